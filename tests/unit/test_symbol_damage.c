/* Debug info that is damaged gives fewer names, or wrong ones, but never harm. Each round runs in a process
 * of its own, so that one that dies or hangs is told from the others. */
#include "check.h"
#include "test_symbol_world.h"

#include <sys/wait.h>

#define ROUNDS    120
#define ADDRESSES 300
#define PATIENCE  60 /* seconds */

static void write_random_bytes(int fd, const GElf_Shdr *section, int count) {
    for (int i = 0; i < count; i++) {
        char byte = (char)rand();
        uint64_t place = ((uint64_t)rand() << 20 ^ (uint64_t)rand()) % section->sh_size;
        CHECK(pwrite(fd, &byte, 1, (off_t)(section->sh_offset + place)) == 1);
    }
}

/* Changes bytes: of the descriptions of functions in every round, of all debug info in every third. */
static void damage(const char *path, int round) {
    int fd = open(path, O_RDWR);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) abort();
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        gelf_getshdr(section, &header);
        const char *name = elf_strptr(elf, names, header.sh_name);
        bool is_chosen = strcmp(name, ".debug_info") == 0 || strcmp(name, ".debug_abbrev") == 0 ||
                         (round % 3 == 0 && strncmp(name, ".debug_", 7) == 0);
        if (is_chosen) write_random_bytes(fd, &header, 1 + rand() % (round % 2 ? 5 : 1000));
    }
    elf_end(elf);
    close(fd);
}

static void look_around(void) {
    struct world world;
    world_map(&world, "damaged");
    world_resolve(&world);
    uint64_t size = world.module.end - world.module.start;
    for (uint64_t at = 1; at < size; at += size / ADDRESSES + 1) {
        struct symbol_list list = look_up_word(&world, world.module.start + at + 1);
        CHECK(list.count && list.frames[0].function);
    }
    world_end(&world);
}

int main(void) {
    char folder[64];
    enter_folder(folder);
    elf_version(EV_CURRENT);
    write_file("names.cpp",
        "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\n"
        "int main(int argc, char **argv) {\n"
        "    std::map<std::string, std::vector<int>> index;\n"
        "    for (int i = 0; i < argc * 100; i++) index[std::to_string(i)].push_back(i);\n"
        "    std::vector<std::string> keys;\n"
        "    for (auto &[key, value] : index) keys.push_back(key);\n"
        "    std::sort(keys.begin(), keys.end());\n"
        "    return (int)keys.size(); }\n");
    CHECK(shell("g++ -std=c++17 -O2 -g -o five names.cpp && g++ -std=c++17 -O2 -gdwarf-4 -o four names.cpp"));
    for (int round = 0; round < ROUNDS; round++) {
        srand((unsigned)round);
        CHECK(shell("cp %s damaged", round % 4 < 2 ? "five" : "four"));
        damage("damaged", round);
        pid_t child = fork();
        if (child == 0) {
            alarm(PATIENCE);
            look_around();
            _exit(check_failures != 0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        if (!CHECK(status == 0)) fprintf(stderr, "round %d ended with status %#x\n", round, status);
    }
    leave_folder(folder);
    return check_result();
}
