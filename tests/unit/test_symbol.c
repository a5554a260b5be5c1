/* From addresses to functions, files and lines, in programs of many kinds. */
#include "check.h"
#include "test_symbol_world.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* `middle` and `inner` are inlined into `outer`; the call of `leaf` cannot be a jump. */
static const char *const c_program =                                    /* line */
    "int leaf(int);\n"                                                  /* 1 */
    "static inline __attribute__((always_inline)) int inner(int x) {\n" /* 2 */
    "    return leaf(x) + 1;\n"                                         /* 3 */
    "}\n"                                                               /* 4 */
    "static inline __attribute__((always_inline)) int middle(int x) {\n"
    "    return inner(x + 2) * 3;\n" /* 6 */
    "}\n"
    "__attribute__((noinline)) int outer(int x) {\n" /* 8 */
    "    return middle(x) - 5;\n"                    /* 9 */
    "}\n"
    "__attribute__((noinline)) int leaf(int x) { __asm__ volatile(\"\" : \"+r\"(x)); return x; }\n"
    "int main(int argc, char **argv) { return outer(argc); }\n";

static bool ends_with(const char *text, const char *end) {
    size_t length = text ? strlen(text) : 0, end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Address of the first call instruction in the function, by objdump. */
static uint64_t call_in(const char *path, const char *function) {
    char command[4096], line[4096] = "";
    snprintf(
        command, sizeof command, "objdump -d '%s' | sed -n '/<%s>:/,/^$/p' | grep -m1 call", path, function);
    FILE *pipe = popen(command, "r");
    if (!pipe || !fgets(line, sizeof line, pipe)) line[0] = 0;
    pclose(pipe);
    return strtoull(line, NULL, 16);
}

static void check_inline_chain(struct symbol_list list, const char *source) {
    if (!CHECK(list.count == 3)) return;
    static const struct {
        const char *function;
        int line, function_line;
        bool inlined;
    } expected[3] = {{"inner", 3, 2, true}, {"middle", 6, 5, true}, {"outer", 9, 8, false}};
    for (size_t i = 0; i < 3; i++) {
        CHECK_TEXT(list.frames[i].function, expected[i].function);
        CHECK_EQUAL(list.frames[i].line, expected[i].line);
        CHECK_EQUAL(list.frames[i].function_line, expected[i].function_line);
        CHECK_EQUAL(list.frames[i].inlined, expected[i].inlined);
        CHECK(ends_with(list.frames[i].file, source));
        CHECK(list.frames[i].file && list.frames[i].file[0] == '/');
    }
}

static void every_kind_of_program_shows_the_inlined_calls(void) {
    static const char *const kinds[] = {"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -no-pie", "-gdwarf-4 -no-pie",
        "-static-pie", "-static", "-gsplit-dwarf", "-flto", "-ffunction-sections -Wl,--gc-sections",
        "-Wl,-z,noseparate-code", "-Wl,-Ttext-segment=0x10000000", "-gz", "-Wl,--build-id=none"};
    write_file("chain.c", c_program);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int before = check_failures;
        struct world world;
        if (!CHECK(shell("gcc -O2 -g %s -o chain chain.c", kinds[i]))) continue;
        world_map(&world, "chain");
        world_resolve(&world);
        uint64_t call = call_in("chain", "outer");
        CHECK(call != 0);
        struct symbol_list list = look_up(&world, call);
        check_inline_chain(list, "/chain.c");
        CHECK(list.module == &world.module);
        CHECK_EQUAL(list.module_address, call);
        list = look_up(&world, address_of("chain", "main"));
        CHECK_TEXT(list.frames[0].function, "main");
        CHECK(resolver_warning(world.resolver) == NULL);
        world_end(&world);
        if (check_failures != before) fprintf(stderr, "  with %s\n", kinds[i]);
    }
}

static void the_call_before_a_return_address_counts(void) {
    struct world world;
    CHECK(shell("gcc -O0 -g -o chain chain.c"));
    world_map(&world, "chain");
    world_resolve(&world);
    uint64_t start = address_of("chain", "outer");
    struct symbol_list list = look_up_word(&world, world.load_bias + start);
    CHECK(strcmp(list.frames[0].function, "outer") != 0);
    list = look_up_word(&world, world.load_bias + start + 1);
    CHECK_TEXT(list.frames[0].function, "outer");
    world_end(&world);
}

static void cpp_names_are_demangled(void) {
    write_file("name.cpp",
        "#include <vector>\n"
        "namespace zoo { struct cat { std::vector<int> v; cat(int n); void feed(long); }; \n"
        "cat::cat(int n) : v(n) {} void cat::feed(long n) { v.push_back((int)n); } }\n"
        "template <class T> T *make(int n) { return new T(n); }\n"
        "int main() { auto *c = make<zoo::cat>(3); auto f = [=](int n) { c->feed(n); };\n"
        "f(1); return 0; }\n");
    struct world world;
    CHECK(shell("g++ -O0 -g -o name name.cpp"));
    static const char *const expected[][2] = {
        {"_ZN3zoo3cat4feedEl", "zoo::cat::feed(long)"},
        {"_ZN3zoo3catC2Ei", "zoo::cat::cat(int)"},
        {"_Z4makeIN3zoo3catEEPT_i", "zoo::cat* make<zoo::cat>(int)"},
        {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"},
    };
    for (int stripped = 0; stripped < 2; stripped++) { /* by DWARF, then by the symbol table */
        if (stripped) CHECK(shell("strip -g name"));
        world_map(&world, "name");
        world_resolve(&world);
        for (size_t i = 0; i < 4; i++) {
            struct symbol_list list = look_up(&world, address_of("name", expected[i][0]) + 4);
            CHECK_TEXT(list.frames[0].function, expected[i][1]);
            if (i != 1) CHECK_TEXT(list.frames[0].linkage, expected[i][0]); /* a constructor has two */
            CHECK_EQUAL(list.frames[0].line > 0, !stripped);
        }
        world_end(&world);
    }
}

static void rust_names_are_demangled(void) {
    if (!shell("rustc --version > /dev/null 2>&1")) {
        fprintf(stderr, "skipped: no rustc, Rust programs are not tested\n");
        return;
    }
    write_file("shelf.rs",
        "mod shelf { pub struct Box3; impl Box3 {\n"
        "#[inline(never)] pub fn fill(&self, n: usize) -> Vec<u8> { vec![7u8; n] } } }\n"
        "fn main() { println!(\"{}\", shelf::Box3.fill(std::env::args().count()).len()); }\n");
    static const struct {
        const char *option, *symbol, *function;
    } schemes[] = {
        {"", "_ZN5shelf5shelf4Box34fill17h.*", "shelf::shelf::Box3::fill"},
        {"-C symbol-mangling-version=v0", "_RNv.*4Box34fill", "<shelf::shelf::Box3>::fill"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct world world;
        CHECK(shell("rustc -O -g %s -o shelf shelf.rs", schemes[i].option));
        uint64_t address = address_of("shelf", schemes[i].symbol);
        if (!address && i == 0) continue; /* a rustc whose default is the new scheme */
        world_map(&world, "shelf");
        CHECK(world.module.start - world.load_bias != world.module.file_offset);
        world_resolve(&world);
        struct symbol_list list = look_up(&world, address);
        CHECK(address != 0);
        CHECK_TEXT(list.frames[list.count - 1].function, schemes[i].function);
        CHECK(ends_with(list.frames[list.count - 1].file, "/shelf.rs"));
        CHECK_EQUAL(list.frames[list.count - 1].line, 2);
        world_end(&world);
    }
}

static void a_stripped_library_has_its_public_names(void) {
    write_file("lib.c",
        "static __attribute__((noinline)) int hidden(int x) { __asm__ volatile(\"\"); return x; }\n"
        "int shown(int x) { return hidden(x) + 1; }\n");
    struct world world;
    CHECK(shell("gcc -O2 -shared -fPIC -o libshow.so lib.c"));
    uint64_t shown = address_of("libshow.so", "shown"), hidden = address_of("libshow.so", "hidden");
    for (int stripped = 0; stripped < 2; stripped++) {
        if (stripped) CHECK(shell("strip libshow.so"));
        world_map(&world, "libshow.so");
        world_resolve(&world);
        CHECK_TEXT(look_up(&world, shown).frames[0].function, "shown");
        CHECK(look_up(&world, shown).frames[0].file == NULL);
        char unknown[64];
        snprintf(unknown, sizeof unknown, "[libshow.so+0x%lx]", hidden);
        CHECK_TEXT(look_up(&world, hidden).frames[0].function, stripped ? unknown : "hidden");
        CHECK(resolver_warning(world.resolver) == NULL);
        world_end(&world);
    }
}

static void assembly_without_sizes_takes_the_nearest_label(void) {
    write_file("bare.s", ".text\n.globl first\nfirst: nop\nnop\nnop\n.globl second\nsecond: nop\nret\n"
                         ".section .note.GNU-stack,\"\",@progbits\n");
    struct world world;
    CHECK(shell("gcc -shared -nostdlib -o libbare.so bare.s"));
    world_map(&world, "libbare.so");
    world_resolve(&world);
    uint64_t first = address_of("libbare.so", "first");
    CHECK_TEXT(look_up(&world, first + 2).frames[0].function, "first");
    CHECK_TEXT(look_up(&world, first + 3).frames[0].function, "second");
    CHECK_TEXT(look_up(&world, first + 4).frames[0].function, "second");
    CHECK(look_up(&world, first + 5).frames[0].function[0] == '[');
    world_end(&world);
}

static void debug_info_may_lie_beside_the_program(void) {
    struct world world;
    CHECK(shell("gcc -O2 -g -Wl,--build-id=none -o apart chain.c"));
    uint64_t call = call_in("apart", "outer");
    CHECK(shell("objcopy --only-keep-debug apart apart.debug && strip apart && "
                "objcopy --add-gnu-debuglink=apart.debug apart"));
    world_map(&world, "apart");
    world_resolve(&world);
    check_inline_chain(look_up(&world, call), "/chain.c");
    world_end(&world);

    CHECK(shell("mkdir -p .debug && mv apart.debug .debug"));
    world_map(&world, "apart");
    world_resolve(&world);
    check_inline_chain(look_up(&world, call), "/chain.c");
    world_end(&world);

    CHECK(shell("gcc -O0 -g -Wl,--build-id=none -o other chain.c && "
                "objcopy --only-keep-debug other .debug/apart.debug"));
    world_map(&world, "apart");
    world_resolve(&world);
    CHECK(look_up(&world, call).frames[0].file == NULL); /* its checksum is not the one in the link */
    world_end(&world);
}

static void debug_info_may_be_shared_by_dwz(void) {
    if (!shell("dwz --version > /dev/null 2>&1")) {
        fprintf(stderr, "skipped: no dwz, files that share debug info are not tested\n");
        return;
    }
    write_file("sorted.cpp",
        "#include <algorithm>\n#include <string>\n#include <vector>\n"
        "__attribute__((noinline)) void fill(std::vector<std::string> &words) {\n"
        "    words.push_back(\"word\");\n"
        "}\n"
        "int main() { std::vector<std::string> words; fill(words); return (int)words.size(); }\n");
    CHECK(shell("g++ -O2 -gdwarf-4 -o one sorted.cpp && cp one two"));
    uint64_t call = call_in("one", "_Z4fill.*");
    struct symbol_list lists[2];
    struct world worlds[2];
    world_map(&worlds[0], "one");
    world_resolve(&worlds[0]);
    lists[0] = look_up(&worlds[0], call);
    CHECK(shell("dwz -m common.debug -h one two 2> /dev/null; readelf -S one | grep -q debugaltlink"));
    world_map(&worlds[1], "one");
    world_resolve(&worlds[1]);
    lists[1] = look_up(&worlds[1], call);
    CHECK(lists[0].count > 1);
    CHECK_EQUAL(lists[1].count, lists[0].count);
    for (size_t i = 0; i < lists[0].count && i < lists[1].count; i++) {
        CHECK_TEXT(lists[1].frames[i].function, lists[0].frames[i].function);
        CHECK_TEXT(lists[1].frames[i].file, lists[0].frames[i].file);
        CHECK_EQUAL(lists[1].frames[i].line, lists[0].frames[i].line);
    }
    world_end(&worlds[0]);
    world_end(&worlds[1]);
}

/* libc6-dbg is keyed by build-id. */
static void debug_info_by_build_id_is_enough(void) {
    static const char libc[] = "/lib/x86_64-linux-gnu/libc.so.6";
    struct world world;
    if (access(libc, R_OK) == 0) world_map(&world, libc);
    char path[256];
    if (access(libc, R_OK) == 0)
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%02x", world.module.build_id[0]);
    if (access(libc, R_OK) != 0 || access(path, R_OK) != 0) {
        fprintf(stderr, "skipped: no libc6-dbg, debug info by build-id is not tested\n");
        return;
    }
    struct symbol_list lists[2];
    uint64_t address = (world.module.start + world.module.end) / 2 - world.load_bias;
    for (int i = 0; i < 2; i++) { /* with libc, then without */
        if (i == 1) world.module.path = "/nowhere/libc.so.6";
        world_resolve(&world);
        for (size_t step = 0; step < 64; step++) {
            lists[i] = look_up(&world, address + step * 64);
            if (lists[i].frames[0].line > 0) break;
        }
        CHECK(lists[i].frames[0].line > 0);
        CHECK(resolver_warning(world.resolver) == NULL);
        if (i == 0) address = lists[0].module_address;
        if (i == 1) CHECK_EQUAL(lists[1].module_address, address);
        world_end(&world);
    }
}

static void names_of_a_changed_file_are_not_used(void) {
    struct world world;
    CHECK(shell("gcc -O2 -g -o changed chain.c"));
    uint64_t call = call_in("changed", "outer");
    world_map(&world, "changed");
    CHECK(shell("gcc -O0 -g -o changed chain.c"));
    world_resolve(&world);
    char unknown[64];
    snprintf(unknown, sizeof unknown, "[changed+0x%lx]", call);
    struct symbol_list list = look_up(&world, call);
    CHECK_TEXT(list.frames[0].function, unknown);
    CHECK_EQUAL(list.count, 1);
    CHECK_TEXT(resolver_warning(world.resolver),
        "changed has changed since the recording: its functions are shown as addresses");
    world_end(&world);

    unlink("changed");
    world_resolve(&world);
    CHECK_TEXT(look_up(&world, call).frames[0].function, unknown);
    CHECK_TEXT(resolver_warning(world.resolver),
        "changed does not exist here: its functions are shown as addresses");
    world_end(&world);

    write_file("changed", "no program");
    world_resolve(&world);
    CHECK_TEXT(look_up(&world, call).frames[0].function, unknown);
    CHECK_TEXT(resolver_warning(world.resolver),
        "changed cannot be read as an ELF file: its functions are shown as addresses");
    world_end(&world);
}

static void without_build_id_the_time_of_change_counts(void) {
    struct world world;
    CHECK(shell("gcc -O2 -g -Wl,--build-id=none -o dated chain.c"));
    uint64_t call = call_in("dated", "outer");
    struct stat status;
    CHECK(stat("dated", &status) == 0);
    for (int later = 0; later < 2; later++) {
        world_map(&world, "dated");
        CHECK_EQUAL(world.module.build_id_size, 0);
        world.process.start_realtime = (uint64_t)(status.st_mtime + (later ? -10 : 10)) * 1000000000u;
        world.module.first_seen = 1000000;
        world_resolve(&world);
        CHECK_EQUAL(look_up(&world, call).count, later ? 1 : 3);
        CHECK_EQUAL(resolver_warning(world.resolver) != NULL, later);
        world_end(&world);
    }
    world_map(&world, "dated");
    world.module.deleted = true; /* another file has taken the name */
    world_resolve(&world);
    CHECK_EQUAL(look_up(&world, call).count, 1);
    world_end(&world);
}

static void a_running_program_lends_its_deleted_file(void) {
    struct world world;
    CHECK(shell("(cat chain.c; echo '#include <unistd.h>'; echo "
                "'__attribute__((constructor)) static void wait_here(void) { pause(); }') > waits.c && "
                "gcc -O2 -g -o waits waits.c"));
    uint64_t call = call_in("waits", "outer");
    world_map(&world, "waits");
    pid_t child = fork();
    if (child == 0) {
        execl("./waits", "./waits", NULL);
        _exit(1);
    }
    char link[128], command[4096], line[4096] = "";
    snprintf(command, sizeof command, "grep 'r-xp.*/waits' /proc/%d/maps", child);
    for (int i = 0; i < 200 && !line[0]; i++) {
        FILE *pipe = popen(command, "r");
        if (!fgets(line, sizeof line, pipe)) line[0] = 0;
        pclose(pipe);
        usleep(10000);
    }
    uint64_t start = 0, end = 0;
    CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
    snprintf(link, sizeof link, "/proc/%d/map_files/%lx-%lx", child, start, end);
    world.load_bias += start - world.module.start;
    world.module.start = start;
    world.module.end = end;
    world.module.deleted = true;
    world.process.running_pid = child;
    world.process.state = PROCESS_RUNNING;
    unlink("waits");
    if (access(link, R_OK) == 0) {
        world_resolve(&world);
        check_inline_chain(look_up(&world, call), "/waits.c");
        CHECK(resolver_warning(world.resolver) == NULL);
        world_end(&world);
    } else {
        fprintf(stderr, "skipped: /proc/PID/map_files may not be read, deleted programs are not tested\n");
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void what_is_no_file_has_a_name_too(void) {
    struct world world;
    CHECK(shell("gcc -O2 -g -o chain chain.c"));
    world_map(&world, "chain");
    world_resolve(&world);
    struct symbol_list list = look_up_word(&world, (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT);
    CHECK_TEXT(list.frames[0].function, "[cut]");
    CHECK(list.module == NULL);
    list = look_up_word(&world, 0x1235);
    CHECK_TEXT(list.frames[0].function, "[0x1234]");
    CHECK(list.module == NULL);
    CHECK_EQUAL(look_up_word(&world, 0).count, 1);
    world_end(&world);
    world.module.path = "[vdso]";
    world_resolve(&world);
    list = look_up(&world, address_of("chain", "main"));
    CHECK_TEXT(list.frames[0].function, "[vdso]");
    CHECK(list.module == &world.module);
    CHECK(resolver_warning(world.resolver) == NULL);
    world_end(&world);
}

static void note_progress(void *context, size_t done, size_t all) {
    size_t *seen = context;
    CHECK(done >= seen[0] && done <= all);
    seen[0] = done;
    seen[1] = all;
}

static void all_addresses_are_resolved_once(void) {
    struct world world;
    CHECK(shell("gcc -O2 -g -o chain chain.c"));
    world_map(&world, "chain");
    uint64_t call = world.load_bias + call_in("chain", "outer") + 1;
    uint64_t main_address = world.load_bias + address_of("chain", "main") + 1;
    uint64_t frames[] = {call, main_address, main_address}, other_frames[] = {call};
    struct model_stack stacks[] = {
        {.frames = frames, .frame_count = 3}, {.frames = other_frames, .frame_count = 1}};
    world.model.stacks = stacks;
    world.model.stack_count = 2;
    world_resolve(&world);
    size_t seen[2] = {0};
    resolver_resolve_all(world.resolver, note_progress, seen);
    CHECK_EQUAL(seen[0], 2);
    CHECK_EQUAL(seen[1], 2);
    unlink("chain"); /* needed no more */
    check_inline_chain(resolver_look_up(world.resolver, &stacks[1], 0), "/chain.c");
    CHECK(resolver_look_up(world.resolver, &stacks[0], 0).frames ==
          resolver_look_up(world.resolver, &stacks[1], 0).frames);
    CHECK_TEXT(resolver_look_up(world.resolver, &stacks[0], 2).frames[0].function, "main");
    world_end(&world);
}

int main(void) {
    char folder[64];
    enter_folder(folder);
    every_kind_of_program_shows_the_inlined_calls();
    the_call_before_a_return_address_counts();
    cpp_names_are_demangled();
    rust_names_are_demangled();
    a_stripped_library_has_its_public_names();
    assembly_without_sizes_takes_the_nearest_label();
    debug_info_may_lie_beside_the_program();
    debug_info_may_be_shared_by_dwz();
    debug_info_by_build_id_is_enough();
    names_of_a_changed_file_are_not_used();
    without_build_id_the_time_of_change_counts();
    a_running_program_lends_its_deleted_file();
    what_is_no_file_has_a_name_too();
    all_addresses_are_resolved_once();
    leave_folder(folder);
    return check_result();
}
