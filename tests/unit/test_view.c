/* Rows and trees over a small made-up program. The resolver is replaced: a frame's value is an index into
 * `names`. */
#include "check.h"
#include "no_labels.h"
#include "view/call_tree.h"
#include "view/flame.h"
#include "view/frame_filter.h"
#include "view/view.h"

#include <stdlib.h>

static struct model_module program = {.path = "/bin/program"}, library = {.path = "/lib/libx.so"};

enum {
    MAIN_10,
    MAIN_20,
    PARSE,
    TEMPLATE_INT,
    TEMPLATE_LONG,
    NEW,
    VECTOR,
    HIDDEN,
    CUT,
    INLINED,
    WRAPPER,
    NAMED,
    POOL
};

static const struct name {
    struct symbol symbols[2];
    size_t count;
    const struct model_module *module;
} names[] = {
    [MAIN_10] = {{{"main", NULL, "main.c", 10, 1, false, NULL}}, 1, &program},
    [MAIN_20] = {{{"main", NULL, "main.c", 20, 1, false, NULL}}, 1, &program},
    [PARSE] = {{{"parse", NULL, "parse.c", 5, 1, false, NULL}}, 1, &program},
    [TEMPLATE_INT] = {{{"fill<int>", NULL, "fill.h", 7, 1, false, NULL}}, 1, &program},
    [TEMPLATE_LONG] = {{{"fill<long>", NULL, "fill.h", 7, 1, false, NULL}}, 1, &program},
    [NEW] = {{{"operator new(unsigned long)", NULL, NULL, 0, 0, false, NULL}}, 1, &library},
    [VECTOR] = {{{"std::vector<int>::resize(unsigned long)", NULL, "vector.h", 99, 1, false, NULL}}, 1,
        &program},
    [HIDDEN] = {{{"[libx.so+0x12]", NULL, NULL, 0, 0, false, NULL}}, 1, &library},
    [CUT] = {{{"[cut]", NULL, NULL, 0, 0, false, NULL}}, 1, NULL},
    [INLINED] = {{{"std::vector<int>::resize(unsigned long)", NULL, "vector.h", 99, 1, true, NULL},
                     {"load", NULL, "load.c", 33, 30, false, NULL}},
        2, &program},
    [WRAPPER] = {{{"xmalloc", NULL, NULL, 0, 0, false, NULL}}, 1, &program},
    [NAMED] = {{{"work", NULL, NULL, 0, 0, false, NULL}}, 1, &program},
    [POOL] = {{{"pool_alloc", NULL, "pool.c", 12, 10, false, NULL}}, 1, &program},
};

struct symbol_list resolver_look_up(
    struct resolver *resolver, const struct model_stack *stack, uint32_t index) {
    (void)resolver;
    const struct name *name = &names[stack->frames[index]];
    return (struct symbol_list){name->symbols, name->count, name->module, 0};
}

static struct model_stack stacks[8];
static struct model_thread threads[2] = {{.tid = 7, .name = "main", .exact_bytes = 100, .samples = 3},
    {.tid = 8, .name = "worker", .exact_bytes = 900, .samples = 5}};
static struct model model = {.stacks = stacks, .threads = threads, .thread_count = 2};

#define STACK(live, total, ...)                                                                              \
    add_stack((const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8, live, total)

static void add_stack(const uint64_t *frames, size_t count, double live, double total) {
    struct model_stack *stack = &stacks[model.stack_count++];
    uint64_t *copy = calloc(count + 1, sizeof *copy);
    memcpy(copy, frames, count * sizeof *copy);
    *stack = (struct model_stack){.frames = copy, .frame_count = (uint32_t)count};
    figures_clear(&stack->figures);
    stack->figures.live_bytes.value = live;
    stack->figures.total_bytes.value = total;
    stack->figures.total_objects.value = 1;
}

static void make_model(void) {
    STACK(100, 1000, PARSE, MAIN_10);
    STACK(200, 200, PARSE, MAIN_20);
    STACK(50, 60, TEMPLATE_INT, MAIN_10);
    STACK(5, 70, TEMPLATE_LONG, MAIN_10);
    STACK(400, 400, NEW, VECTOR, MAIN_10);
    STACK(8, 8, NEW, VECTOR, HIDDEN);
    STACK(16, 16, NEW, INLINED, MAIN_20);
    STACK(1, 1, NEW, CUT);
}

static struct view_rows rows_by(enum view_by by, const char *filter, bool raw) {
    struct view_rows rows = {0};
    struct view_query query = {by, SORT_LIVE, filter, raw};
    struct problem problem = {0};
    CHECK(view_rows_query(&model, NULL, &query, &rows, &problem) == 0);
    return rows;
}

static const struct view_row *row_named(const struct view_rows *rows, const char *function, int line) {
    for (size_t i = 0; i < rows->count; i++)
        if (rows->rows[i].function && strcmp(rows->rows[i].function, function) == 0 &&
            rows->rows[i].line == line)
            return &rows->rows[i];
    return NULL;
}

static double live_of(const struct view_row *row) {
    return row ? row->figures.live_bytes.value : -1;
}

static void every_grouping_adds_up_to_the_total(void) {
    for (int raw = 0; raw <= 1; raw++)
        for (int by = BY_SITE; by <= BY_STACK; by++) {
            if (by == BY_THREAD) continue;
            struct view_rows rows = rows_by((enum view_by)by, NULL, raw);
            double live = 0, total = 0;
            for (size_t i = 0; i < rows.count; i++) {
                live += rows.rows[i].figures.live_bytes.value;
                total += rows.rows[i].figures.total_bytes.value;
                if (i) CHECK(live_of(&rows.rows[i]) <= live_of(&rows.rows[i - 1]));
            }
            CHECK_EQUAL(live, 780);
            CHECK_EQUAL(total, 1755);
            CHECK_EQUAL(rows.sum.live_bytes.value, 780);
            view_rows_free(&rows);
        }
}

static void sites_lie_outside_the_plumbing(void) {
    struct view_rows rows = rows_by(BY_SITE, NULL, false);
    CHECK_EQUAL(live_of(row_named(&rows, "parse", 5)), 300);
    CHECK_EQUAL(live_of(row_named(&rows, "main", 10)), 400);
    CHECK_EQUAL(live_of(row_named(&rows, "load", 33)), 16);
    /* A container whose caller has no line is the best that is known. */
    CHECK_EQUAL(live_of(row_named(&rows, "std::vector<int>::resize(unsigned long)", 99)), 8);
    CHECK_EQUAL(live_of(row_named(&rows, "[cut]", 0)), 1);
    CHECK(row_named(&rows, "operator new(unsigned long)", 0) == NULL);
    CHECK(row_named(&rows, "parse", 5)->largest == &stacks[1]);
    view_rows_free(&rows);

    rows = rows_by(BY_SITE, NULL, true);
    CHECK_EQUAL(live_of(row_named(&rows, "operator new(unsigned long)", 0)), 425);
    view_rows_free(&rows);
}

static void lines_join_what_shares_them(void) {
    struct view_rows sites = rows_by(BY_SITE, NULL, false), lines = rows_by(BY_LINE, NULL, false);
    CHECK_EQUAL(live_of(row_named(&sites, "fill<int>", 7)), 50);
    CHECK_EQUAL(live_of(row_named(&sites, "fill<long>", 7)), 5);
    CHECK(row_named(&lines, "fill<int>", 7) == NULL);
    const struct view_row *shared = NULL;
    for (size_t i = 0; i < lines.count; i++)
        if (lines.rows[i].file && strcmp(lines.rows[i].file, "fill.h") == 0) shared = &lines.rows[i];
    CHECK(shared && !shared->function && shared->line == 7);
    CHECK_EQUAL(live_of(shared), 55);
    CHECK_EQUAL(live_of(row_named(&lines, "parse", 5)), 300);
    view_rows_free(&sites);
    view_rows_free(&lines);
}

static void coarser_groupings_know_only_their_part(void) {
    struct view_rows rows = rows_by(BY_FUNCTION, NULL, false);
    CHECK_EQUAL(live_of(row_named(&rows, "parse", 0)), 300);
    CHECK(row_named(&rows, "parse", 0)->file == NULL);
    view_rows_free(&rows);
    rows = rows_by(BY_MODULE, NULL, true);
    CHECK_EQUAL(rows.count, 2);
    CHECK_TEXT(rows.rows[0].module, "/lib/libx.so");
    CHECK_EQUAL(live_of(&rows.rows[0]), 425);
    view_rows_free(&rows);
    rows = rows_by(BY_STACK, NULL, false);
    CHECK_EQUAL(rows.count, model.stack_count);
    view_rows_free(&rows);
}

static void filters_look_at_every_frame(void) {
    struct view_rows rows = rows_by(BY_SITE, "libx", false);
    CHECK_EQUAL(rows.sum.live_bytes.value, 425);
    view_rows_free(&rows);
    rows = rows_by(BY_SITE, "^main$", false);
    CHECK_EQUAL(rows.sum.live_bytes.value, 771);
    view_rows_free(&rows);
    rows = rows_by(BY_SITE, "load\\.c", false);
    CHECK_EQUAL(rows.sum.live_bytes.value, 16);
    view_rows_free(&rows);
    rows = rows_by(BY_SITE, "nothing like it", false);
    CHECK_EQUAL(rows.count, 0);
    view_rows_free(&rows);
    struct problem problem = {0};
    CHECK(view_rows_make(&model, NULL, BY_SITE, SORT_LIVE, "(", &rows, &problem) == -PROBLEM_USAGE);
    CHECK(strstr(problem.what, "regular expression") != NULL);
}

static void a_filter_remembers_more_symbols_than_it_starts_with(void) {
    enum { MANY = 5000 };
    static struct symbol symbols[MANY];
    struct frame_filter filter;
    CHECK(frame_filter_make("^odd$", &filter, NULL) == 0);
    size_t kept = 0;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < MANY; i++) {
            symbols[i].function = i % 2 ? "odd" : "even";
            struct source_frame frame = {&symbols[i], NULL};
            struct source_frames frames = {.frames = &frame, .count = 1, .end = 1};
            kept += frame_filter_keeps(&filter, &frames);
        }
    CHECK_EQUAL(kept, MANY);
    frame_filter_free(&filter);
}

static void threads_show_their_exact_bytes(void) {
    struct view_rows rows = rows_by(BY_THREAD, NULL, false);
    CHECK_EQUAL(rows.count, 2);
    CHECK_TEXT(rows.rows[0].function, "worker (thread 8)");
    CHECK_EQUAL(rows.rows[0].figures.total_bytes.value, 900);
    view_rows_free(&rows);
    rows = rows_by(BY_THREAD, "main", false);
    CHECK_EQUAL(rows.count, 1);
    view_rows_free(&rows);
}

static void check_sums(const struct view_node *node) {
    double below = 0;
    for (size_t i = 0; i < node->child_count; i++) {
        below += node->children[i].figures.live_bytes.value;
        check_sums(&node->children[i]);
        if (i)
            CHECK(
                node->children[i].figures.live_bytes.value <= node->children[i - 1].figures.live_bytes.value);
    }
    CHECK(below <= node->figures.live_bytes.value);
}

static void trees_hold_everything_below_a_node(void) {
    struct view_query all = {.sort = SORT_LIVE, .raw_sites = true};
    struct view_node *root = view_tree_query(&model, NULL, &all, NULL);
    CHECK(root != NULL);
    CHECK_EQUAL(root->figures.live_bytes.value, 780);
    check_sums(root);
    CHECK_EQUAL(root->child_count, 4);
    CHECK_EQUAL(root->children[0].line, 10);
    CHECK_EQUAL(root->children[0].figures.live_bytes.value, 555);
    CHECK_EQUAL(root->children[0].child_count, 4);
    CHECK_TEXT(root->children[0].children[0].function, "std::vector<int>::resize(unsigned long)");
    CHECK_TEXT(root->children[0].children[0].children[0].function, "operator new(unsigned long)");
    view_tree_free(root);

    struct view_query query = {.sort = SORT_LIVE, .filter = "vector"};
    root = view_tree_query(&model, NULL, &query, NULL);
    CHECK_EQUAL(root->figures.live_bytes.value, 424);
    CHECK_EQUAL(root->children[0].child_count, 0); /* main is the site */
    view_tree_free(root);
}

static const char *site_of(const uint64_t *words, uint32_t count) {
    struct source_frames frames = {0};
    struct model_stack stack = {.frames = words, .frame_count = count};
    source_frames_expand(&frames, NULL, &stack);
    const char *function = frames.frames[source_frames_site(&frames, false)].symbol->function;
    source_frames_free(&frames);
    return function;
}

static void a_wrapper_of_malloc_gives_way_to_any_name(void) {
    CHECK_TEXT(site_of((const uint64_t[]){WRAPPER, NAMED, MAIN_10}, 3), "work");
    CHECK_TEXT(site_of((const uint64_t[]){WRAPPER, WRAPPER, PARSE}, 3), "parse");
    CHECK_TEXT(site_of((const uint64_t[]){WRAPPER, HIDDEN, NAMED}, 3), "xmalloc");
    CHECK_TEXT(site_of((const uint64_t[]){WRAPPER, CUT}, 2), "xmalloc");
    CHECK_TEXT(site_of((const uint64_t[]){WRAPPER}, 1), "xmalloc");
    /* A container is kept where its caller has no line, and is a better site than the wrapper. */
    CHECK_TEXT(
        site_of((const uint64_t[]){WRAPPER, VECTOR, NAMED}, 3), "std::vector<int>::resize(unsigned long)");
    CHECK_TEXT(
        site_of((const uint64_t[]){WRAPPER, VECTOR, HIDDEN}, 3), "std::vector<int>::resize(unsigned long)");
    CHECK_TEXT(site_of((const uint64_t[]){WRAPPER, VECTOR, MAIN_10}, 3), "main");
}

/* What a site held when the heap was largest adds up; its own peak does not. */
static void the_peak_is_that_of_the_heap(void) {
    stacks[0].figures.at_peak_bytes.value = 10;
    stacks[2].figures.at_peak_bytes.value = 70;
    stacks[4].figures.at_peak_bytes.value = 20;
    stacks[4].figures.own_peak_bytes = 500;
    struct view_query query = {BY_SITE, SORT_PEAK, NULL, false};
    struct view_rows rows;
    CHECK(view_rows_query(&model, NULL, &query, &rows, NULL) == 0);
    CHECK_TEXT(rows.rows[0].function, "fill<int>");
    CHECK_TEXT(rows.rows[1].function, "main");
    CHECK_EQUAL(view_sort_value(&rows.sum, SORT_PEAK), 100);
    view_rows_free(&rows);
    struct view_node *root = view_tree_query(&model, NULL, &query, NULL);
    CHECK_EQUAL(view_sort_value(&root->figures, SORT_PEAK), 100);
    CHECK_EQUAL(view_sort_value(&root->children[0].figures, SORT_PEAK), 100);
    view_tree_free(root);
}

/* The two stacks of parse had their peaks at different times: 120 and 250, while the heap never held more
 * than 300. */
static void no_row_peaks_above_the_heap(void) {
    stacks[0].figures.own_peak_bytes = 120;
    stacks[1].figures.own_peak_bytes = 250;
    model.totals.peak_at_most = 400;
    struct view_rows rows = rows_by(BY_SITE, NULL, false);
    CHECK_EQUAL(row_named(&rows, "parse", 5)->figures.own_peak_bytes, 370);
    view_rows_free(&rows);
    model.totals.peak_at_most = 300;
    rows = rows_by(BY_SITE, NULL, false);
    CHECK_EQUAL(row_named(&rows, "parse", 5)->figures.own_peak_bytes, 300);
    view_rows_free(&rows);
}

/* Expanding a stack only up to its site finds the site that expanding all of it finds. */
static void a_site_is_found_without_the_whole_stack(void) {
    struct source_frames whole = {0}, part = {0};
    size_t less = 0;
    for (size_t i = 0; i < model.stack_count; i++)
        for (int kind = 0; kind < 4; kind++) {
            bool raw = kind & 1;
            struct model_stack stack = stacks[i];
            stack.in_own_heap = kind & 2; /* functions called "...alloc..." are its allocator's */
            source_frames_expand(&whole, NULL, &stack);
            source_frames_expand_to_site(&part, NULL, &stack);
            CHECK_EQUAL(source_frames_site(&part, raw), source_frames_site(&whole, raw));
            less += part.count < whole.count;
        }
    CHECK(less > 0);
    const uint64_t frames[] = {POOL, PARSE, MAIN_10};
    struct model_stack pool = {.frames = frames, .frame_count = 3, .in_own_heap = true};
    source_frames_expand_to_site(&part, NULL, &pool);
    CHECK_TEXT(part.frames[source_frames_site(&part, false)].symbol->function, "parse");
    pool.in_own_heap = false; /* the buffer must not remember the former stack's heap */
    source_frames_expand_to_site(&part, NULL, &pool);
    CHECK_TEXT(part.frames[source_frames_site(&part, false)].symbol->function, "pool_alloc");
    source_frames_free(&whole);
    source_frames_free(&part);
}

/* As many callees as a call may have: the first are listed, the others indexed. */
static void a_call_tree_finds_every_callee_again(void) {
    enum { CALLERS = 3, CALLEES = 3000 };
    struct call_tree tree = {0};
    uint32_t callers[CALLERS], numbers[CALLERS][CALLEES];
    call_tree_begin(&tree);
    for (uint32_t i = 0; i < CALLERS; i++) callers[i] = call_tree_callee(&tree, 0, i);
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 0; k < CALLEES; k++)
            for (uint32_t i = 0; i < CALLERS; i++) {
                uint32_t number = call_tree_callee(&tree, callers[i], k);
                if (round) CHECK_EQUAL(number, numbers[i][k]);
                numbers[i][k] = number;
                CHECK(tree.calls[number].parent == callers[i] && tree.calls[number].frame == k);
            }
    CHECK_EQUAL(tree.count, 1 + CALLERS + CALLERS * CALLEES);
    call_tree_free(&tree);
}

static struct flame flame_with(uint64_t nodes_max, const char *filter) {
    struct flame flame = {0};
    struct view_query query = {.filter = filter};
    struct problem problem = {0};
    CHECK(flame_make(&model, NULL, &query, nodes_max, &flame, &problem) == 0);
    return flame;
}

static double live_below(const struct flame *flame, uint32_t node) {
    double sum = 0;
    for (uint32_t i = node; i < flame->node_count; i++) {
        uint32_t at = i;
        while (at > node) at = flame->nodes[at].parent;
        if (at != node) break; /* a branch is a range of nodes */
        if (flame->nodes[i].row != FLAME_NONE)
            sum += flame->parts[0].rows[flame->nodes[i].row].live_bytes.value;
    }
    return sum;
}

static uint32_t node_of(const struct flame *flame, const char *function, int line) {
    for (uint32_t i = 1; i < flame->node_count; i++) {
        if (flame->nodes[i].frame == FLAME_NONE) continue;
        const struct listed_frame *frame = &flame->frames[flame->nodes[i].frame];
        if (strcmp(frame->function, function) == 0 && frame->line == line) return i;
    }
    return FLAME_NONE;
}

static void a_flame_is_the_tree_down_to_the_sites(void) {
    struct flame flame = flame_with(0, NULL);
    CHECK_EQUAL(flame.parts[0].sum.live_bytes.value, 780);
    CHECK_EQUAL(live_below(&flame, 0), 780);
    CHECK_EQUAL(live_below(&flame, node_of(&flame, "main", 10)), 555);
    CHECK_EQUAL(live_below(&flame, node_of(&flame, "main", 20)), 216);
    CHECK_EQUAL(live_below(&flame, node_of(&flame, "load", 33)), 16);
    CHECK(node_of(&flame, "operator new(unsigned long)", 0) == FLAME_NONE);
    CHECK_EQUAL(flame.merged_count, 0);
    for (size_t i = 0; i < model.stack_count; i++) {
        CHECK(flame.parts[0].stack_row[i] < flame.row_count);
        CHECK(flame.parts[0].stack_site[i] < flame.frame_count);
    }
    CHECK_TEXT(flame.frames[flame.parts[0].stack_site[6]].function, "load");
    for (uint32_t i = 1; i < flame.node_count; i++) CHECK(flame.nodes[i].parent < i);
    flame_free(&flame);
}

static void what_is_merged_still_adds_up(void) {
    struct flame whole = flame_with(0, NULL);
    for (uint64_t nodes = 1; nodes < whole.node_count; nodes++) {
        struct flame flame = flame_with(nodes, NULL);
        uint32_t kept = 0, merged = 0;
        for (uint32_t i = 0; i < flame.node_count; i++) {
            kept += !flame.nodes[i].merged;
            merged += flame.nodes[i].merged;
        }
        CHECK(kept <= nodes);
        CHECK_EQUAL(merged, flame.merged_count);
        CHECK_EQUAL(kept + merged, whole.node_count);
        CHECK_EQUAL(live_below(&flame, 0), 780);
        if (node_of(&flame, "main", 10) != FLAME_NONE)
            CHECK_EQUAL(live_below(&flame, node_of(&flame, "main", 10)), 555);
        CHECK(flame.least > 0 && flame.least <= 1);
        flame_free(&flame);
    }
    flame_free(&whole);
}

static void a_flame_of_what_matches(void) {
    struct flame flame = flame_with(0, "load");
    CHECK_EQUAL(flame.parts[0].sum.live_bytes.value, 16);
    CHECK_EQUAL(live_below(&flame, 0), 16);
    CHECK(flame.parts[0].stack_row[0] == FLAME_NONE && flame.parts[0].stack_site[0] == FLAME_NONE);
    flame_free(&flame);
    flame = flame_with(5, "nothing like it");
    CHECK_EQUAL(flame.node_count, 1);
    CHECK_EQUAL(flame.row_count, 0);
    flame_free(&flame);
}

/* Both sides are the same here, so each part has all; without lines, calls from two lines of a function are
 * one. */
static void two_recordings_share_a_flame(void) {
    const struct stack_tree_side sides[] = {{&model, NULL}, {&model, NULL}};
    struct view_query by_name = {.by = BY_FUNCTION}, by_line = {.by = BY_SITE};
    struct problem problem = {0};
    struct flame flame, lines, alone = flame_with(0, NULL);
    CHECK(flame_compare(sides, &by_name, 0, &flame, &problem) == 0);
    CHECK(flame_compare(sides, &by_line, 0, &lines, &problem) == 0);
    CHECK_EQUAL(live_below(&flame, node_of(&flame, "main", 0)), 555 + 216);
    CHECK(node_of(&flame, "main", 10) == FLAME_NONE);
    CHECK_EQUAL(lines.node_count, alone.node_count);
    CHECK_EQUAL(live_below(&lines, node_of(&lines, "main", 10)), 555);
    CHECK(flame.node_count < lines.node_count);
    for (int part = 0; part < STACK_TREE_SIDES; part++) {
        double sum = 0;
        for (uint32_t i = 0; i < flame.row_count; i++) sum += flame.parts[part].rows[i].live_bytes.value;
        CHECK_EQUAL(sum, 780);
        CHECK_EQUAL(flame.parts[part].sum.live_bytes.value, 780);
        for (size_t i = 0; i < model.stack_count; i++)
            CHECK_EQUAL(flame.parts[part].stack_row[i], flame.parts[0].stack_row[i]);
    }
    flame_free(&flame);
    flame_free(&lines);
    flame_free(&alone);
}

/* The stack of what was dropped has no frames. */
static void stacks_without_frames_have_a_name(void) {
    struct model_stack *stack = &stacks[model.stack_count - 1];
    uint32_t saved = stack->frame_count;
    stack->frame_count = 0;
    struct view_rows rows = rows_by(BY_MODULE, NULL, false);
    CHECK(row_named(&rows, "[dropped]", 0) != NULL);
    view_rows_free(&rows);
    struct flame flame = flame_with(0, NULL);
    CHECK(node_of(&flame, "[dropped]", 0) != FLAME_NONE);
    CHECK_EQUAL(live_below(&flame, node_of(&flame, "[dropped]", 0)), 1);
    flame_free(&flame);
    stack->frame_count = saved;
}

int main(void) {
    make_model();
    every_grouping_adds_up_to_the_total();
    sites_lie_outside_the_plumbing();
    lines_join_what_shares_them();
    coarser_groupings_know_only_their_part();
    filters_look_at_every_frame();
    a_filter_remembers_more_symbols_than_it_starts_with();
    threads_show_their_exact_bytes();
    trees_hold_everything_below_a_node();
    a_wrapper_of_malloc_gives_way_to_any_name();
    the_peak_is_that_of_the_heap();
    no_row_peaks_above_the_heap();
    a_site_is_found_without_the_whole_stack();
    a_call_tree_finds_every_callee_again();
    a_flame_is_the_tree_down_to_the_sites();
    what_is_merged_still_adds_up();
    a_flame_of_what_matches();
    two_recordings_share_a_flame();
    stacks_without_frames_have_a_name();
    for (size_t i = 0; i < model.stack_count; i++) free((void *)stacks[i].frames);
    return check_result();
}
