/* Names that were found once are kept on disk, for as long as they are right. */
#include "check.h"
#include "symbol/symbol_cache.h"
#include "test_symbol_world.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* `inner` is inlined into `outer`. */
static const char *const program = "int leaf(int);\n"
                                   "static inline __attribute__((always_inline)) int inner(int x) {\n"
                                   "    return leaf(x) + 1;\n"
                                   "}\n"
                                   "__attribute__((noinline)) int outer(int x) { return inner(x) * 3; }\n"
                                   "__attribute__((noinline)) int other(int x) { return inner(x) * 5; }\n"
                                   "__attribute__((noinline)) int leaf(int x) { return x; }\n"
                                   "int main(int argc, char **argv) { return outer(argc) + other(argc); }\n";

static void compile(const char *name, const char *flags) {
    write_file("program.c", program);
    CHECK(shell("gcc -O1 -g %s -o %s program.c", flags, name));
}

/* What the function's first instruction belongs to, with the cache in `folder` if that is not NULL. The texts
 * stay good until the world ends. */
static struct symbol_list find(
    struct world *world, const char *path, const char *function, const char *folder) {
    static uint64_t word;
    static struct model_stack stack = {.frames = &word, .frame_count = 1};
    uint64_t address = address_of("program.symbols", function);
    world_map(world, path);
    word = world->load_bias + address + 1;
    world->model.stacks = &stack;
    world->model.stack_count = 1;
    world_resolve(world);
    if (folder) resolver_use_cache(world->resolver, folder);
    resolver_resolve_all(world->resolver, NULL, NULL);
    return resolver_look_up(world->resolver, &stack, 0);
}

enum knowledge { NAME_ALONE, WITH_LINE };

#define CHECK_FIND(path, function_name, folder, knowledge)                                                   \
    do {                                                                                                     \
        struct world world_;                                                                                 \
        struct symbol_list list_ = find(&world_, path, function_name, folder);                               \
        CHECK_TEXT(list_.frames[list_.count - 1].function, function_name);                                   \
        CHECK_EQUAL(list_.frames[list_.count - 1].line > 0, (knowledge) == WITH_LINE);                       \
        CHECK(((list_.frames[list_.count - 1].file) != NULL) == ((knowledge) == WITH_LINE));                 \
        world_end(&world_);                                                                                  \
    } while (0)

static size_t files_in(const char *folder) {
    size_t count = 0;
    DIR *directory = opendir(folder);
    if (!directory) return 0;
    for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

/* Makes the debug info unreadable. */
static void spoil_debug_info(const char *path) {
    int fd = open(path, O_RDWR);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) abort();
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        gelf_getshdr(section, &header);
        const char *name = elf_strptr(elf, names, header.sh_name);
        if (strncmp(name, ".debug_", 7) != 0) continue;
        char *zeros = calloc(1, header.sh_size);
        CHECK(pwrite(fd, zeros, header.sh_size, (off_t)header.sh_offset) == (ssize_t)header.sh_size);
        free(zeros);
    }
    elf_end(elf);
    close(fd);
}

static void start_afresh(const char *name, const char *flags) {
    CHECK(shell("rm -rf cache* program*") && mkdir("cache", 0700) == 0);
    compile(name, flags);
    CHECK(shell("cp -p %s program.symbols", name));
}

/* Puts the debug info into a file of its own, so that it can be taken away: after that, lines can only come from the
 * cache. */
static void split_debug_info(void) {
    CHECK(shell("objcopy --only-keep-debug program program.kept && strip -g program && "
                "objcopy --add-gnu-debuglink=program.kept program"));
}

static void take_debug_info_away(void) {
    CHECK(shell("mv program.kept elsewhere"));
}

static void names_come_from_the_cache_the_second_time(void) {
    start_afresh("program", "");
    split_debug_info();
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_EQUAL(files_in("cache"), 1);
    take_debug_info_away();
    CHECK_FIND("program", "outer", NULL, NAME_ALONE);
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_FIND("program", "other", "cache", NAME_ALONE); /* was never asked for */
}

static void later_names_are_added_to_earlier_ones(void) {
    start_afresh("program", "");
    split_debug_info();
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_FIND("program", "other", "cache", WITH_LINE);
    CHECK_EQUAL(files_in("cache"), 1);
    take_debug_info_away();
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_FIND("program", "other", "cache", WITH_LINE);
}

static void a_program_that_has_changed_is_read_anew(void) {
    start_afresh("program", "-Wl,--build-id=0x0123456789abcdef");
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    /* Another program that claims the same build-id. */
    CHECK(shell("sed 's/outer/older/g' program.c > program2.c && "
                "gcc -O1 -g -Wl,--build-id=0x0123456789abcdef -o program program2.c"));
    CHECK(shell("cp -p program program.symbols"));
    CHECK_FIND("program", "older", "cache", WITH_LINE);
}

/* Somebody who may write the file gives a forged one the same build-id, size and time of modification, in its place or
 * under its name. */
static void a_program_that_only_looks_the_same_is_read_anew(void) {
    static const char *const replacements[] = {"cat forged > program", "mv forged program"};
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++) {
        start_afresh("program", "-Wl,--build-id=0x0123456789abcdef");
        CHECK_FIND("program", "outer", "cache", WITH_LINE);
        CHECK(shell("sed 's/outer/older/g' program.c > program2.c && mv program2.c program.c && "
                    "gcc -O1 -g -Wl,--build-id=0x0123456789abcdef -o forged program.c"));
        CHECK(shell("test $(stat -c %%s program) = $(stat -c %%s forged) && touch -r program stamp"));
        CHECK(shell("cp forged program.symbols && %s && touch -r stamp program", replacements[i]));
        CHECK_FIND("program", "older", "cache", WITH_LINE);
    }
}

static void nothing_is_kept_of_another_user_s_files(void) {
    if (geteuid() != 0) {
        fprintf(stderr, "skipped: not root, files of other users are not tested\n");
        return;
    }
    start_afresh("program", "");
    CHECK(chown("program", 65534, 65534) == 0);
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_EQUAL(files_in("cache"), 0);
    CHECK(chown("program", 0, 0) == 0);
    split_debug_info();
    CHECK(chown("program.kept", 65534, 65534) == 0);
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_EQUAL(files_in("cache"), 0);
}

static void nothing_is_kept_without_a_build_id(void) {
    start_afresh("program", "-Wl,--build-id=none");
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_EQUAL(files_in("cache"), 0);
}

static void debug_info_that_appears_later_is_found(void) {
    start_afresh("program", "");
    split_debug_info();
    take_debug_info_away();
    CHECK_FIND("program", "outer", "cache", NAME_ALONE);
    CHECK_EQUAL(files_in("cache"), 0);
    CHECK(shell("mv elsewhere program.kept"));
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_EQUAL(files_in("cache"), 1);

    /* The debug file is gone again: its lines are still in the cache, and still right. */
    CHECK(shell("mv program.kept elsewhere"));
    CHECK_FIND("program", "outer", NULL, NAME_ALONE);
    CHECK_FIND("program", "outer", "cache", WITH_LINE);

    /* Another debug file in its place: that is read, not the cache. */
    CHECK(shell("cp elsewhere program.kept && touch program.kept"));
    spoil_debug_info("program.kept");
    CHECK_FIND("program", "outer", "cache", NAME_ALONE);
}

static void a_missing_part_of_the_debug_info_is_not_forgotten(void) {
    start_afresh("program", "-gsplit-dwarf");
    CHECK(shell("mkdir away && mv *.dwo away"));
    struct world world;
    struct symbol_list list = find(&world, "program", "outer", "cache");
    CHECK_TEXT(list.frames[0].function, "outer");
    CHECK_EQUAL(list.frames[0].function_line, 0); /* the line alone is in the program */
    world_end(&world);
    CHECK_EQUAL(files_in("cache"), 0);
    CHECK(shell("mv away/*.dwo . && rmdir away"));
    list = find(&world, "program", "outer", "cache");
    CHECK_EQUAL(list.frames[list.count - 1].function_line, 5);
    world_end(&world);
    CHECK_EQUAL(files_in("cache"), 1);
}

static void damaged_files_are_ignored_and_replaced(void) {
    start_afresh("program", "");
    split_debug_info();
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK(shell("cp cache/*.names good"));
    struct stat status;
    CHECK(stat("good", &status) == 0);
    srand(1);
    for (int round = 0; round < 60; round++) {
        CHECK(shell("cp good bad"));
        int fd = open("bad", O_RDWR);
        off_t place = round < 30 ? rand() % 128 : 128 + rand() % ((int)status.st_size - 128);
        if (round % 3 == 0) {
            CHECK(ftruncate(fd, place) == 0);
        } else {
            char byte;
            CHECK(pread(fd, &byte, 1, place) == 1);
            byte = (char)(byte ^ (1 << round % 8));
            CHECK(pwrite(fd, &byte, 1, place) == 1);
        }
        close(fd);
        CHECK(shell("cat bad > \"$(ls cache/*.names)\""));
        CHECK_FIND("program", "outer", "cache", WITH_LINE);
    }
    take_debug_info_away();
    CHECK_FIND("program", "outer", "cache", WITH_LINE); /* a good one was written */
    CHECK(shell("rm cache/* && mkfifo \"cache/$(basename good).names\""));
}

static void a_folder_that_cannot_be_used_is_no_harm(void) {
    start_afresh("program", "");
    CHECK_FIND("program", "outer", "cache/not/there", WITH_LINE);
    CHECK_FIND("program", "outer", "/proc", WITH_LINE);
    CHECK(shell("touch file"));
    CHECK_FIND("program", "outer", "file", WITH_LINE);
}

static void several_processes_may_use_it_at_the_same_time(void) {
    start_afresh("program", "");
    split_debug_info();
    pid_t children[8];
    for (int i = 0; i < 8; i++) {
        children[i] = fork();
        if (children[i]) continue;
        for (int round = 0; round < 10; round++)
            CHECK_FIND("program", (i + round) % 2 ? "outer" : "other", "cache", WITH_LINE);
        _exit(check_failures != 0);
    }
    for (int i = 0; i < 8; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    CHECK_EQUAL(files_in("cache"), 1);
    take_debug_info_away();
    CHECK_FIND("program", "outer", "cache", WITH_LINE);
    CHECK_FIND("program", "other", "cache", WITH_LINE);
}

static void what_was_not_used_for_longest_is_removed(void) {
    CHECK(shell(
        "rm -rf cache && mkdir cache && cd cache && "
        "for i in 1 2 3 4 5; do head -c 1000 /dev/zero > $i.names; touch -d \"2020-01-0$i\" $i.names; done; "
        "touch -d 2020-01-01 6.names.abcdef; touch 7.names.abcdef; head -c 9000 /dev/zero > other; "
        "touch -d 2019-01-01 other; touch 2.names"));
    symbol_cache_trim("cache", 10000);
    CHECK(shell("cd cache && ls 1.names 2.names 3.names 4.names 5.names 7.names.abcdef other > /dev/null"));
    CHECK_EQUAL(files_in("cache"), 7);
    symbol_cache_trim("cache", 2500);
    CHECK(shell("cd cache && ls 2.names 5.names other > /dev/null"));
    CHECK_EQUAL(files_in("cache"), 4);
    symbol_cache_trim("cache/nowhere", 0);
}

static void the_folder_is_the_users_own(void) {
    char here[4096];
    if (!getcwd(here, sizeof here)) abort();
    CHECK(shell("rm -rf xdg home && mkdir home"));
    setenv("HOME", "home", 1); /* not a full path */
    unsetenv("XDG_CACHE_HOME");
    CHECK(symbol_cache_folder() == NULL);

    char path[5000];
    snprintf(path, sizeof path, "%s/home", here);
    setenv("HOME", path, 1);
    char *folder = symbol_cache_folder();
    CHECK(folder && strcmp(folder + strlen(here), "/home/.cache/malloscope") == 0);
    free(folder);
    struct stat status;
    CHECK(stat("home/.cache/malloscope", &status) == 0 && (status.st_mode & 0777) == 0700);

    snprintf(path, sizeof path, "%s/xdg", here);
    setenv("XDG_CACHE_HOME", path, 1);
    folder = symbol_cache_folder();
    CHECK(folder && strcmp(folder + strlen(here), "/xdg/malloscope") == 0);
    free(folder);

    CHECK(shell("rm -rf xdg/malloscope && touch xdg/malloscope"));
    CHECK(symbol_cache_folder() == NULL);
    if (geteuid() != 0) return;
    CHECK(shell("rm xdg/malloscope && mkdir xdg/malloscope && chown 65534 xdg/malloscope"));
    CHECK(symbol_cache_folder() == NULL);
    CHECK(shell("rm -rf xdg/malloscope && chown 65534 xdg"));
    CHECK(symbol_cache_folder() == NULL);
    CHECK(shell("rm -rf home/.cache && chown 65534 home"));
    unsetenv("XDG_CACHE_HOME");
    CHECK(symbol_cache_folder() == NULL && access("home/.cache", F_OK) != 0);
}

int main(void) {
    char folder[64];
    enter_folder(folder);
    names_come_from_the_cache_the_second_time();
    later_names_are_added_to_earlier_ones();
    a_program_that_has_changed_is_read_anew();
    a_program_that_only_looks_the_same_is_read_anew();
    nothing_is_kept_of_another_user_s_files();
    nothing_is_kept_without_a_build_id();
    debug_info_that_appears_later_is_found();
    a_missing_part_of_the_debug_info_is_not_forgotten();
    damaged_files_are_ignored_and_replaced();
    a_folder_that_cannot_be_used_is_no_harm();
    several_processes_may_use_it_at_the_same_time();
    what_was_not_used_for_longest_is_removed();
    the_folder_is_the_users_own();
    leave_folder(folder);
    return check_result();
}
