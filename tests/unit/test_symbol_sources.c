/* Names for programs that come without debug info: from a compressed symbol table, from relocations, from the
 * kernel, from the map that a JIT compiler leaves, and from files of another machine. */
#include "check.h"
#include "test_symbol_world.h"

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

int main(void) {
    char folder[64];
    enter_folder(folder);
    a_compressed_symbol_table_names_private_functions();
    stubs_are_named_by_what_they_lead_to();
    both_halves_of_a_stub_and_chosen_functions_have_names();
    leave_folder(folder);
    return check_result();
}
