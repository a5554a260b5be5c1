/* Addresses that are looked up all at once, on several processors, give what they give one by one. */
#include "check.h"
#include "symbol/parallel_lookup.h"
#include "test_symbol_world.h"

#include <sched.h>

#define ADDRESSES 30000

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_frames(struct symbol_list a, struct symbol_list b) {
    if (a.count != b.count || a.module != b.module || a.module_address != b.module_address) return false;
    for (size_t i = 0; i < a.count; i++) {
        const struct symbol *x = &a.frames[i], *y = &b.frames[i];
        if (!same_text(x->function, y->function) || !same_text(x->linkage, y->linkage) ||
            !same_text(x->file, y->file) || x->line != y->line || x->function_line != y->function_line ||
            x->inlined != y->inlined)
            return false;
    }
    return true;
}

struct watch {
    size_t calls, last, all;
    bool in_order;
};

static void watch_progress(void *context, size_t done, size_t all) {
    struct watch *watch = context;
    if (done < watch->last || done > all) watch->in_order = false;
    watch->last = done;
    watch->all = all;
    watch->calls++;
}

/* All of the program's code, as far as it goes, in steps of a few bytes. */
static size_t fill_words(const struct world *world, uint64_t *words) {
    uint64_t size = world->module.end - world->module.start, step = size / ADDRESSES + 1;
    size_t count = 0;
    for (uint64_t at = 1; at < size && count < ADDRESSES; at += step)
        words[count++] = world->module.start + at + 1;
    return count;
}

static void many_addresses_at_once(const char *program) {
    struct world at_once, one_by_one;
    world_map(&at_once, program);
    world_map(&one_by_one, program);
    uint64_t *words = malloc(ADDRESSES * sizeof *words);
    struct model_stack stack = {.frames = words, .frame_count = (uint32_t)fill_words(&at_once, words)};
    at_once.model.stacks = &stack;
    at_once.model.stack_count = 1;
    world_resolve(&at_once);
    world_resolve(&one_by_one);
    struct watch watch = {.in_order = true};
    resolver_resolve_all(at_once.resolver, watch_progress, &watch);
    CHECK(watch.in_order && watch.last == watch.all && watch.all == stack.frame_count);

    size_t wrong = 0, inlined = 0, with_lines = 0;
    for (uint32_t i = 0; i < stack.frame_count; i++) {
        struct symbol_list list = resolver_look_up(at_once.resolver, &stack, i);
        struct symbol_list expected = look_up_word(&one_by_one, words[i]);
        expected.module = at_once.model.modules; /* the one of its own world */
        if (!same_frames(list, expected)) wrong++;
        inlined += list.count > 1;
        with_lines += list.frames[0].line > 0;
    }
    CHECK_EQUAL(wrong, 0);
    fprintf(stderr, "%s: %u addresses, %zu with lines, %zu inlined\n", program, stack.frame_count, with_lines,
        inlined);
    world_end(&at_once);
    world_end(&one_by_one);
    free(words);
}

/* Debug info in all its forms, enough of it for several processors. */
static void every_form_of_debug_info(void) {
    write_file("big.cpp",
        "#include <map>\n#include <string>\n#include <vector>\n#include <regex>\n#include <iostream>\n"
        "template <int N> struct part {\n"
        "    static size_t run(const std::string &s) {\n"
        "        std::map<std::string, std::vector<int>> index; index[s].push_back(N);\n"
        "        struct local { static size_t count(const std::string &s) { return s.size() + N; } };\n"
        "        auto add = [&](size_t n) { return n + index.size() + local::count(s); };\n"
        "        return add(N) + part<N - 1>::run(s + \"x\"); } };\n"
        "template <> struct part<0> { static size_t run(const std::string &s) { return s.size(); } };\n"
        "int main(int argc, char **argv) {\n"
        "    std::regex expression(\"a(b|c)*d\"); std::cout << std::regex_match(argv[0], expression);\n"
        "    return (int)part<60>::run(argv[0]); }\n");
    /* Compressing is the linker's work: what it would make is made of the first program, without the compiler. */
    static const char *const forms[] = {"g++ -O2 -g big.cpp -o", "objcopy --compress-debug-sections=zlib big0",
        "objcopy --compress-debug-sections=zlib-gnu big0", "g++ -O2 -gdwarf-4 big.cpp -o",
        "g++ -O2 -g -gsplit-dwarf big.cpp -o", "g++ -O0 -g big.cpp -o",
        "g++ -O2 -g -fdebug-types-section big.cpp -o"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        CHECK(shell("%s big%zu", forms[i], i));
        char name[32];
        snprintf(name, sizeof name, "big%zu", i);
        many_addresses_at_once(name);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) < 2)
        fprintf(stderr, "one processor only: nothing is looked up on several\n");
    char folder[64];
    many_addresses_at_once(argv[0]);
    enter_folder(folder);
    every_form_of_debug_info();
    leave_folder(folder);
    return check_result();
}
