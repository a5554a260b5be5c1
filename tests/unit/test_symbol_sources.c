/* Names for programs that come without debug info: from a compressed symbol table, from relocations, from the
 * kernel, from the map that a JIT compiler leaves, and from files of another machine. */
#include "check.h"
#include "test_symbol_world.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

static const char *const library =
    "static __attribute__((noinline)) int hidden(int x) { __asm__ volatile(\"\"); return x; }\n"
    "int shown(int x) { return hidden(x) + 1; }\n";

/* As Fedora's packages are made: .symtab without what .dynsym has, stripped of everything else, compressed.
 */
static void a_compressed_symbol_table_names_private_functions(void) {
    struct world world;
    write_file("lib.c", library);
    CHECK(shell("gcc -O2 -g -shared -fPIC -o libmini.so lib.c"));
    uint64_t shown = address_of("libmini.so", "shown"), hidden = address_of("libmini.so", "hidden");
    CHECK(shell("echo hidden > keep && objcopy --only-keep-debug libmini.so mini && "
                "objcopy -S --keep-symbols=keep mini && xz mini && strip libmini.so"));
    world_map(&world, "libmini.so");
    world_resolve(&world);
    CHECK(look_up(&world, hidden).frames[0].function[0] == '[');
    world_end(&world);
    CHECK(shell("objcopy --add-section .gnu_debugdata=mini.xz libmini.so && ! nm libmini.so 2> /dev/null | "
                "grep -q ."));
    world_map(&world, "libmini.so");
    world_resolve(&world);
    CHECK_TEXT(look_up(&world, hidden).frames[0].function, "hidden");
    CHECK_TEXT(look_up(&world, shown).frames[0].function, "shown");
    CHECK(resolver_warning(world.resolver) == NULL);
    world_end(&world);
}

/* All stubs that objdump lists as <name@plt>. */
static size_t compare_stubs(struct world *world, const char *path) {
    char command[4096], line[4096], name[2048], shown[4096];
    size_t count = 0;
    uint64_t address;
    snprintf(command, sizeof command, "objdump -d -C '%s' | grep '@plt>:$'", path);
    FILE *pipe = popen(command, "r");
    while (fgets(line, sizeof line, pipe)) {
        if (!CHECK(sscanf(line, "%lx <%2047[^\n]", &address, name) == 2)) continue;
        strstr(name, "@plt>:")[0] = 0;
        snprintf(shown, sizeof shown, "%s@plt", name);
        CHECK_TEXT(look_up(world, address).frames[0].function, shown);
        CHECK_TEXT(look_up(world, address + 5).frames[0].function, shown);
        CHECK(look_up(world, address).frames[0].file == NULL);
        count++;
    }
    pclose(pipe);
    return count;
}

static void stubs_are_named_by_what_they_lead_to(void) {
    static const char *const kinds[] = {"-Wl,-z,lazy", "-Wl,-z,now", "-fcf-protection -Wl,-z,ibtplt,-z,lazy",
        "-fcf-protection -Wl,-z,ibtplt,-z,now", "-no-pie", "-g", "-fuse-ld=gold", "-shared -fPIC"};
    write_file("calls.cpp",
        "#include <cstdio>\n#include <cstdlib>\n#include <string>\n"
        "void (*volatile pointer)(void *) = free;\n" /* its slot is GLOB_DAT, its stub in .plt.got */
        "int main(int argc, char **argv) {\n"
        "    std::string *text = new std::string(argv[0]);\n"
        "    text->append(*text); puts(text->c_str()); free(malloc((size_t)argc)); delete text;\n"
        "}\n");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int before = check_failures;
        struct world world;
        if (!CHECK(shell("g++ -O1 %s -o calls calls.cpp", kinds[i]))) continue;
        for (int stripped = 0; stripped < 2; stripped++) {
            if (stripped) CHECK(shell("strip calls"));
            world_map(&world, "calls");
            world_resolve(&world);
            CHECK(compare_stubs(&world, "calls") >= 6);
            world_end(&world);
        }
        if (check_failures != before) fprintf(stderr, "  with %s\n", kinds[i]);
    }
}

/* Of an indirect function there is no symbol in the relocation, but one of the function that chooses. With
 * lazy binding under IBT a stub has two halves. */
static void both_halves_of_a_stub_and_chosen_functions_have_names(void) {
    struct world world;
    write_file("choose.c",
        "#include <stdlib.h>\n"
        "static int fast(int x) { return x; }\n"
        "static void *choose(void) { return (void *)fast; }\n"
        "__attribute__((visibility(\"hidden\"))) int chosen(int) __attribute__((ifunc(\"choose\")));\n"
        "int run(int x) { free(malloc(9)); return chosen(x) + 1; }\n");
    CHECK(shell(
        "gcc -O1 -fno-builtin -shared -fPIC -fcf-protection -Wl,-z,ibtplt,-z,lazy -o libchoose.so choose.c"));
    world_map(&world, "libchoose.so");
    world_resolve(&world);
    char command[512], line[512];
    snprintf(command, sizeof command,
        "objdump -d -j .plt libchoose.so | grep -B1 'push  *[$]' | grep endbr64; objdump -d -j .plt.sec "
        "libchoose.so | grep endbr64");
    FILE *pipe = popen(command, "r");
    size_t malloc_stubs = 0, free_stubs = 0, chosen_stubs = 0;
    while (fgets(line, sizeof line, pipe)) {
        const char *name = look_up(&world, strtoull(line, NULL, 16)).frames[0].function;
        malloc_stubs += strcmp(name, "malloc@plt") == 0;
        free_stubs += strcmp(name, "free@plt") == 0;
        chosen_stubs += strcmp(name, "chosen@plt") == 0 || strcmp(name, "choose@plt") == 0;
    }
    pclose(pipe);
    CHECK_EQUAL(malloc_stubs, 2);
    CHECK_EQUAL(free_stubs, 2);
    CHECK(chosen_stubs >= 1);
    world_end(&world);
}

/* The kernel's library has no file: a copy of the one in this process stands for it. */
static void the_vdso_of_this_kernel_has_names(void) {
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!image) {
        fprintf(stderr, "skipped: no vdso here, its names are not tested\n");
        return;
    }
    FILE *file = fopen("vdso.so", "w");
    const Elf64_Ehdr *header = (const void *)image;
    fwrite(image, 1, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize, file);
    fclose(file);
    struct world world;
    world_map(&world, "vdso.so");
    world.module.path = "[vdso]";
    uint64_t function = 0;
    FILE *pipe = popen("nm -D vdso.so | grep ' clock_gettime@'", "r");
    CHECK(fscanf(pipe, "%lx", &function) == 1);
    pclose(pipe);
    for (int same = 1; same >= 0; same--) {
        if (!same) world.module.build_id[0] ^= 1; /* that of another kernel */
        world_resolve(&world);
        struct symbol_list list = look_up(&world, function);
        CHECK_TEXT(list.frames[0].function, same ? "clock_gettime" : "[vdso]");
        CHECK(list.module == &world.module);
        CHECK(resolver_warning(world.resolver) == NULL);
        world_end(&world);
    }
}

/* The folder "image" holds the files of the recorded machine, on which `here` had another library under the
 * name of one that lies here. */
static void files_of_another_machine_lie_below_a_folder(void) {
    struct world world;
    char *here = realpath(".", NULL), *root = realpath(".", NULL), id[64] = "";
    root = strcat(realloc(root, 4096), "/image");
    CHECK(shell("mkdir -p image%s && gcc -O2 -g -shared -fPIC -o libaway.so lib.c", here));
    uint64_t hidden = address_of("libaway.so", "hidden");
    world_map(&world, "libaway.so");
    for (int i = 0; i < world.module.build_id_size; i++)
        sprintf(id + 2 * i, "%02x", world.module.build_id[i]);
    CHECK(shell("mkdir -p image/usr/lib/debug/.build-id/%.2s && objcopy --only-keep-debug libaway.so "
                "image/usr/lib/debug/.build-id/%.2s/%s.debug && strip libaway.so && mv libaway.so image%s && "
                "echo 'int other;' > other.c && gcc -g -shared -o libaway.so other.c",
        id, id, id + 2, here));
    world_resolve(&world);
    CHECK(look_up(&world, hidden).frames[0].function[0] == '[');
    CHECK_TEXT(resolver_warning(world.resolver),
        "libaway.so has changed since the recording: its functions are shown as addresses");
    world_end(&world);

    world_resolve(&world);
    resolver_set_sysroot(world.resolver, root);
    CHECK_TEXT(look_up(&world, hidden).frames[0].function, "hidden");
    CHECK_EQUAL(look_up(&world, hidden).frames[0].line, 1);
    CHECK(resolver_warning(world.resolver) == NULL);
    world_end(&world);

    /* A link that begins with a slash leads below the folder, too. */
    CHECK(shell("mkdir image/store && mv image%s/libaway.so image/store && ln -s /store/libaway.so image%s/",
        here, here));
    world_resolve(&world);
    resolver_set_sysroot(world.resolver, root);
    CHECK_TEXT(look_up(&world, hidden).frames[0].function, "hidden");
    world_end(&world);
    free(root);
    free(here);
}

static void without_build_id_the_named_folder_is_believed(void) {
    struct world world;
    char *here = realpath(".", NULL), *root = realpath(".", NULL);
    root = strcat(realloc(root, 4096), "/image");
    CHECK(shell("gcc -O2 -g -Wl,--build-id=none -shared -fPIC -o libplain.so lib.c"));
    uint64_t hidden = address_of("libplain.so", "hidden");
    CHECK(shell("mkdir -p image/usr/lib/debug%s && objcopy --only-keep-debug libplain.so libplain.debug && "
                "cp libplain.so image%s/ && strip image%s/libplain.so && "
                "objcopy --add-gnu-debuglink=libplain.debug image%s/libplain.so && "
                "mv libplain.debug image/usr/lib/debug%s/",
        here, here, here, here, here));
    world_map(&world, "libplain.so");
    world.process.start_realtime = 1; /* long before the copy was made */
    world_resolve(&world);
    resolver_set_sysroot(world.resolver, root);
    CHECK_TEXT(look_up(&world, hidden).frames[0].function, "hidden");
    CHECK_EQUAL(look_up(&world, hidden).frames[0].line, 1);
    world_end(&world);

    /* What has that name here is not what was recorded there. */
    CHECK(shell("rm image%s/libplain.so", here));
    world.process.start_realtime = UINT64_MAX / 2;
    for (int with_folder = 0; with_folder < 2; with_folder++) {
        world_resolve(&world);
        if (with_folder) resolver_set_sysroot(world.resolver, root);
        CHECK_EQUAL(look_up(&world, hidden).frames[0].line, with_folder ? 0 : 1);
        CHECK_EQUAL(resolver_warning(world.resolver) != NULL, with_folder);
        world_end(&world);
    }
    free(root);
    free(here);
}

/* A user who names a sysroot means its files, also where the running process sees another file of that name. */
static void without_build_id_the_named_folder_comes_before_the_running_process(void) {
    struct world world;
    char *here = realpath(".", NULL), *root = realpath(".", NULL);
    root = strcat(realloc(root, 4096), "/image");
    const char *compiler = "gcc -O2 -g -Wl,--build-id=none -shared -fPIC lib.c";
    CHECK(shell("mkdir -p image%s && %s -o image%s/libnamed.so && %s -Dhidden=other -o libnamed.so", here,
        compiler, here, compiler));
    uint64_t hidden = address_of("libnamed.so", "other");
    world_map(&world, "libnamed.so");
    world.process.state = PROCESS_RUNNING;
    world.process.running_pid = getpid();
    world.process.start_realtime = UINT64_MAX / 2; /* after both files were written */
    for (int with_folder = 0; with_folder < 2; with_folder++) {
        world_resolve(&world);
        if (with_folder) resolver_set_sysroot(world.resolver, root);
        CHECK_TEXT(look_up(&world, hidden).frames[0].function, with_folder ? "hidden" : "other");
        world_end(&world);
    }
    free(root);
    free(here);
}

/* A world with code in no file. Its process has a number that no process can have. */
static void world_generate(struct world *world) {
    *world = (struct world){0};
    world->module = (struct model_module){.path = (char *)MODULE_ANONYMOUS, .start = 0x10000, .end = 0x20000};
    world->process = (struct model_process){
        .state = PROCESS_FINISHED, .executable = world->path, .pid = 2000000000 - getpid()};
    world->process.start_realtime = (uint64_t)time(NULL) * 1000000000u;
    world->model.processes = &world->process;
    world->model.modules = &world->module;
    world->model.process_count = world->model.module_count = 1;
}

static void check_generated(struct world *world, const char *function, const char *warning) {
    world_resolve(world);
    CHECK_TEXT(look_up(world, 0x10008).frames[0].function, function);
    CHECK(look_up(world, 0x10008).module == &world->module);
    CHECK_TEXT(look_up(world, 0x30008).frames[0].function,
        strcmp(function, "made") == 0 ? "_made too" : "[0x30008]"); /* in no module at all */
    CHECK(look_up(world, 0x30008).module == NULL);
    const char *warned = resolver_warning(world->resolver);
    if (!warning)
        CHECK(warned == NULL);
    else if (!CHECK(warned && strstr(warned, warning)))
        fprintf(stderr, "  %s\n", warned ? warned : "(none)");
    world_end(world);
}

static void generated_code_is_named_by_the_map_of_its_compiler(void) {
    struct world world;
    world_generate(&world);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", world.process.pid);
    check_generated(&world, MODULE_ANONYMOUS, NULL);
    write_file(path, "10000 10 made\n30000 10 _made too\nffff 1 _ZN3zoo3cat4feedEl\n");
    check_generated(&world, "made", NULL);
    world_resolve(&world);
    CHECK_TEXT(look_up(&world, 0xffff).frames[0].function, "zoo::cat::feed(long)");
    CHECK_TEXT(look_up(&world, 0x10010).frames[0].function, MODULE_ANONYMOUS);
    world_end(&world);

    write_file(path, "10000 10 made\n30000 10 _made too\nrubbish\n");
    check_generated(&world, "made", "1 of 3 lines of '/tmp/perf-");

    CHECK(shell("touch -d '1 hour ago' %s", path));
    check_generated(&world, MODULE_ANONYMOUS, "is older than process");

    /* Its child began with the same code. */
    world.process.parent_pid = world.process.pid;
    world.process.pid++;
    check_generated(&world, MODULE_ANONYMOUS, NULL);
    world.process.flags = RECORDING_FORKED;
    write_file(path, "10000 10 made\n30000 10 _made too\n");
    check_generated(&world, "made", NULL);
    unlink(path);
}

static void a_map_may_be_of_any_size(void) {
    struct world world;
    world_generate(&world);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", world.process.pid);
    write_file(path, "10000 10 made\n30000 10 _made too\n");
    CHECK(truncate(path, (off_t)40 << 30) == 0); /* a hole */
    check_generated(&world, "made", "has 42949672960 bytes, of which the first 33 are used");
    unlink(path);
}

static void a_map_that_anybody_may_have_left_is_not_used(void) {
    struct world world;
    world_generate(&world);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", world.process.pid);
    write_file("target", "10000 10 made\n30000 10 _made too\n");
    CHECK(symlink(realpath("target", world.path), path) == 0);
    check_generated(&world, MODULE_ANONYMOUS, NULL);
    unlink(path);
    CHECK(mkfifo(path, 0600) == 0); /* nobody waits for somebody to write */
    check_generated(&world, MODULE_ANONYMOUS, NULL);
    unlink(path);
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: not root, maps of other users are not tested\n");
        return;
    }
    write_file(path, "10000 10 made\n30000 10 _made too\n");
    CHECK(chown(path, 65534, 65534) == 0);
    check_generated(&world, MODULE_ANONYMOUS, "belongs to user 65534");
    world.process.user = 65534; /* whose program has written it */
    check_generated(&world, "made", NULL);
    unlink(path);
}

static void a_map_below_the_named_folder_comes_first(void) {
    struct world world;
    world_generate(&world);
    char path[64], *root = realpath(".", NULL);
    snprintf(path, sizeof path, "./tmp/perf-%d.map", world.process.pid);
    CHECK(shell("mkdir tmp"));
    write_file(path, "10000 10 made\n");
    world_resolve(&world);
    resolver_set_sysroot(world.resolver, root);
    CHECK_TEXT(look_up(&world, 0x10008).frames[0].function, "made");
    world_end(&world);
    free(root);
}

int main(void) {
    char folder[64];
    enter_folder(folder);
    a_compressed_symbol_table_names_private_functions();
    stubs_are_named_by_what_they_lead_to();
    both_halves_of_a_stub_and_chosen_functions_have_names();
    the_vdso_of_this_kernel_has_names();
    files_of_another_machine_lie_below_a_folder();
    without_build_id_the_named_folder_is_believed();
    without_build_id_the_named_folder_comes_before_the_running_process();
    generated_code_is_named_by_the_map_of_its_compiler();
    a_map_may_be_of_any_size();
    a_map_that_anybody_may_have_left_is_not_used();
    a_map_below_the_named_folder_comes_first();
    leave_folder(folder);
    return check_result();
}
