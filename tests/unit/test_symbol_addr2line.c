/* Functions, inlined calls, files and lines are those that binutils' addr2line finds, which reads DWARF with
 * code of its own: on 1,000 random addresses of each of these programs: the command and the library that are
 * named as arguments, a Rust program with its standard library, two C++ programs, and this test. */
#include "check.h"
#include "symbol/demangle.h"
#include "test_symbol_world.h"

#define ADDRESSES 1000

static const char *const cpp_program =
    "#include <algorithm>\n#include <functional>\n#include <iostream>\n#include <map>\n#include <memory>\n"
    "#include <numeric>\n#include <sstream>\n#include <string>\n#include <unordered_map>\n#include <vector>\n"
    "namespace shop {\n"
    "template <class T> struct basket {\n"
    "    std::vector<T> items;\n"
    "    void put(T item) { items.push_back(std::move(item)); }\n"
    "    template <class F> auto sum(F f) const {\n"
    "        return std::accumulate(items.begin(), items.end(), decltype(f(items[0])){}, \n"
    "            [&](auto a, const T &b) { return a + f(b); });\n"
    "    }\n"
    "};\n"
    "struct animal { virtual ~animal() = default; virtual std::string name() const = 0; };\n"
    "struct dog : animal { std::string call; explicit dog(int n) : call(std::to_string(n)) {}\n"
    "    std::string name() const override { return \"dog\" + call; } };\n"
    "}\n"
    "int main(int argc, char **argv) {\n"
    "    shop::basket<std::string> words;\n"
    "    shop::basket<std::unique_ptr<shop::animal>> animals;\n"
    "    std::map<std::string, std::vector<int>> index;\n"
    "    std::unordered_map<int, std::string> reverse;\n"
    "    for (int i = 0; i < argc * 100; i++) {\n"
    "        words.put(std::to_string(i));\n"
    "        animals.put(std::make_unique<shop::dog>(i));\n"
    "        index[words.items.back()].push_back(i);\n"
    "        reverse.emplace(i, argv[0]);\n"
    "    }\n"
    "    std::sort(words.items.begin(), words.items.end(), std::greater<>());\n"
    "    std::ostringstream out;\n"
    "    for (auto &[key, value] : index) out << key << value.size();\n"
    "    std::function<int()> f = [&] { return (int)out.str().size() + (int)reverse.size(); };\n"
    "    std::cout << words.sum([](const std::string &s) { return s.size(); }) << f() <<\n"
    "        animals.sum([](const auto &a) { return a->name(); }) << std::endl;\n"
    "}\n";

static const char *const rust_program =
    "use std::collections::{BTreeMap, HashMap};\n"
    "fn index(words: Vec<String>) -> HashMap<String, Vec<usize>> {\n"
    "    let mut index: HashMap<String, Vec<usize>> = HashMap::new();\n"
    "    for (i, word) in words.into_iter().enumerate() { index.entry(word).or_default().push(i); }\n"
    "    index\n"
    "}\n"
    "fn main() {\n"
    "    let sorted: BTreeMap<_, _> = index(std::env::args().collect()).into_iter().collect();\n"
    "    for (word, places) in sorted { println!(\"{word} {places:?}\"); }\n"
    "}\n";

struct range {
    uint64_t address, size;
    char *name;
};

/* The functions of the symbol table: between them lies padding, which belongs to nobody. Constructors made by
 * the sanitizers, if this program is built with them, lie outside the ranges of their units. */
static struct range *read_functions(const char *path, size_t *ret_count) {
    int fd = open(path, O_RDONLY);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    struct range *functions = NULL;
    *ret_count = 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        gelf_getshdr(section, &header);
        if (header.sh_type != SHT_SYMTAB) continue;
        size_t count = header.sh_size / header.sh_entsize;
        functions = calloc(count, sizeof *functions);
        for (size_t i = 0; i < count; i++) {
            GElf_Sym symbol;
            gelf_getsym(elf_getdata(section, NULL), (int)i, &symbol);
            const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
            if (strncmp(name, "_sub_", 5) == 0) continue;
            if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size > 0)
                functions[(*ret_count)++] = (struct range){symbol.st_value, symbol.st_size, strdup(name)};
        }
    }
    elf_end(elf);
    close(fd);
    return functions;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool read_line(FILE *file, char *line, size_t size) {
    if (!fgets(line, (int)size, file)) return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

/* addr2line takes a function's name from the symbol table where DWARF has no linkage name, and there parts
 * that were split off have names of their own. */
static void cut_clone_suffix(char *name) {
    static const char *const marks[] = {" [clone", ".part.", ".cold", ".isra.", ".constprop.", ".localalias"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char *mark = strstr(name, marks[i]);
        if (mark) *mark = 0;
    }
}

/* "file:line (discriminator 3)", "file:?", "??:?" */
static void split_place(char *text, char **ret_file, int *ret_line) {
    char *discriminator = strstr(text, " (disc");
    if (discriminator) *discriminator = 0;
    char *colon = strrchr(text, ':');
    *ret_line = colon ? atoi(colon + 1) : 0;
    if (colon) *colon = 0;
    *ret_file = strcmp(text, "??") == 0 ? NULL : text;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Where DWARF has no linkage name (lambdas and what has them as arguments) addr2line gives an inlined
 * function the name of the symbol around it, and a function around inlined ones its bare name. */
static bool same_function(const struct symbol *frame, const char *function) {
    if (strcmp(frame->function, function) == 0) return true;
    /* What the headers call pread is pread64 to the linker: the name in the source is the one to show. */
    if (frame->linkage && strcmp(frame->linkage, function) == 0) return true;
    return frame->inlined ? !frame->linkage : strstr(frame->function, function) != NULL;
}

/* Equal functions may be one, under several names: where there is only the symbol table, any of them will do.
 */
static const struct range *functions;
static size_t function_count;
static bool is_another_name(const struct symbol *frame, uint64_t address, const char *function) {
    struct result_pool *pool = result_pool_new();
    bool found = false;
    for (size_t i = 0; i < function_count && !frame->file && !found; i++)
        found = address - functions[i].address < functions[i].size &&
                strcmp(demangle_name(pool, functions[i].name, NULL), function) == 0;
    result_pool_free(pool);
    return found;
}

/* Takes "x/.." out, as our paths are without. */
static void fold(char *path) {
    for (char *dots; (dots = strstr(path, "/../"));) {
        char *before = memrchr(path, '/', (size_t)(dots - path));
        if (!before) return;
        memmove(before, dots + 3, strlen(dots + 3) + 1);
    }
}

/* Without a line addr2line gives the name of an object file. Of a DWARF 5 program it takes the line table's
 * file 1 for file 0, the main source (binutils 2.40; `readelf --debug-dump=decodedline` has it right). */
static size_t wrong_files;
static bool same_file(const struct symbol *frame, char *file, int line) {
    if (file) fold(file);
    if (same_text(frame->file, file) || (line == 0 && !frame->file)) return true;
    const char *dot = file ? strrchr(file, '.') : NULL;
    bool is_source = (dot && (strcmp(dot, ".c") == 0 || strcmp(dot, ".cpp") == 0)) ||
                     (file && strstr(file, "/<artificial>")); /* the main source of a program made by LTO */
    wrong_files += is_source;
    return is_source;
}

/* Compares with the frames that addr2line printed for one address. Returns the number of frames. */
static size_t compare(
    FILE *expected, struct symbol_list list, uint64_t address, char *next_line, size_t size) {
    size_t count = 0;
    char function[65536], *place = next_line, *file;
    int line;
    while (read_line(expected, function, sizeof function) && strncmp(function, "0x", 2) != 0) {
        if (!read_line(expected, place, size)) break;
        cut_clone_suffix(function);
        split_place(place, &file, &line);
        const struct symbol *frame = count < list.count ? &list.frames[count] : NULL;
        bool same = frame && frame->line == line && frame->inlined == (count + 1 < list.count) &&
                    (same_function(frame, function) || is_another_name(frame, address, function)) &&
                    same_file(frame, file, line);
        if (!CHECK(same))
            fprintf(stderr, "  0x%lx frame %zu: %s %s:%d, not %s %s:%d\n", address, count,
                frame ? frame->function : "(none)", frame && frame->file ? frame->file : "??",
                frame ? frame->line : 0, function, file ? file : "??", line);
        count++;
    }
    if (!CHECK(count == list.count))
        fprintf(stderr, "  0x%lx: %zu frames, not %zu\n", address, list.count, count);
    snprintf(next_line, size, "%s", function);
    return count;
}

static void compare_program(const char *path, int dwarf_version, size_t least_inlined) {
    wrong_files = 0;
    struct world world;
    world_map(&world, path);
    world_resolve(&world);
    struct range *read = read_functions(path, &function_count);
    functions = read;
    CHECK(function_count > 0);
    uint64_t state = 88172645463325252u, addresses[ADDRESSES];
    FILE *input = fopen("addresses", "w");
    for (int i = 0; i < ADDRESSES; i++) {
        const struct range *function = &functions[next_random(&state) % function_count];
        addresses[i] = function->address + next_random(&state) % function->size;
        fprintf(input, "0x%lx\n", addresses[i]);
    }
    fclose(input);
    CHECK(shell("addr2line -a -f -i -C -e '%s' < addresses > frames", path));
    FILE *expected = fopen("frames", "r");
    static char line[65536];
    read_line(expected, line, sizeof line);
    size_t inlined = 0;
    for (int i = 0; i < ADDRESSES; i++) {
        CHECK(strtoull(line, NULL, 16) == addresses[i]);
        inlined += compare(expected, look_up(&world, addresses[i]), addresses[i], line, sizeof line) - 1;
    }
    CHECK(inlined >= least_inlined); /* or there was nothing to compare */
    CHECK(wrong_files <= (dwarf_version == 5 ? ADDRESSES / 10 : 0));
    fprintf(stderr, "%s: %d addresses, %zu inlined frames\n", path, ADDRESSES, inlined);
    fclose(expected);
    world_end(&world);
    for (size_t i = 0; i < function_count; i++) free(read[i].name);
    free(read);
}

int main(int argc, char **argv) {
    char folder[64], self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
    for (int i = 1; i < argc; i++) argv[i] = realpath(argv[i], NULL);
    enter_folder(folder);
    for (int i = 1; i < argc; i++) compare_program(argv[i], 5, 100);
    if (shell("rustc --version > /dev/null 2>&1")) {
        write_file("words.rs", rust_program);
        CHECK(shell("rustc -O -g -o words words.rs"));
        compare_program("words", 4, 500);
    } else {
        fprintf(stderr, "skipped: no rustc, Rust programs are not tested\n");
    }
    write_file("shop.cpp", cpp_program);
    CHECK(shell("g++ -std=c++17 -O2 -g -gdwarf-5 -o shop5 shop.cpp"));
    CHECK(shell("g++ -std=c++17 -O3 -g -gdwarf-4 -no-pie -o shop4 shop.cpp"));
    compare_program("shop5", 5, 1000);
    compare_program("shop4", 4, 1000);
    compare_program(self, 5, 20);
    leave_folder(folder);
    return check_result();
}
