/* Heaps, types, scopes and threads among the rows and in the tree. */
#include "check.h"
#include "labelled_recording.h"
#include "load_model.h"
#include "model/heap_totals.h"
#include "model/stack_labels.h"
#include "view/source_frames.h"
#include "view/view.h"

static struct labelled labelled;

static struct view_rows rows_by(enum view_by by, const char *filter) {
    struct view_rows rows = {0};
    struct view_query query = {.by = by, .sort = SORT_LIVE, .filter = filter};
    CHECK(view_rows_query(labelled.model, labelled.resolver, &query, &rows, NULL) == 0);
    return rows;
}

static bool is(const char *got, const char *wanted) {
    return got == wanted || (got && wanted && strcmp(got, wanted) == 0);
}

static double live_of(const struct view_row *row) {
    return row->figures.live_bytes.value;
}

static double kept_by(const char *filter) {
    struct view_rows rows = rows_by(BY_SITE, filter);
    double bytes = rows.sum.live_bytes.value;
    view_rows_free(&rows);
    return bytes;
}

static void every_grouping_adds_up_to_the_total(void) {
    for (int by = BY_SITE; by <= BY_STACK; by++) {
        if (by == BY_THREAD) continue;
        struct view_rows rows = rows_by((enum view_by)by, NULL);
        double live = 0;
        for (size_t i = 0; i < rows.count; i++) live += live_of(&rows.rows[i]);
        CHECK_EQUAL(live, 1920);
        view_rows_free(&rows);
    }
}

static void a_site_has_a_row_for_each_heap_and_type(void) {
    struct view_rows rows = rows_by(BY_SITE, NULL);
    CHECK_EQUAL(rows.count, 6);
    const struct {
        double live;
        const char *function, *heap, *type, *scope;
    } expected[] = {
        {1000, "load_level", "textures", "struct pixel", "load; level"},
        {500, "load_level", "malloc", NULL, "load; level"},
        {340, "load_level", "malloc", "struct level", "load; level"},
        {50, "[scope request]", "malloc", NULL, "request"},
        {20, "read_config", "malloc", NULL, NULL},
        {10, "[cut]", "malloc", NULL, NULL},
    };
    for (size_t i = 0; i < rows.count && i < sizeof expected / sizeof *expected; i++) {
        CHECK_EQUAL(live_of(&rows.rows[i]), expected[i].live);
        CHECK_TEXT(rows.rows[i].function, expected[i].function);
        CHECK_TEXT(rows.rows[i].heap, expected[i].heap);
        CHECK(is(rows.rows[i].type, expected[i].type));
        CHECK(is(rows.rows[i].scope, expected[i].scope));
    }
    view_rows_free(&rows);
}

static void other_groupings_tell_what_their_stacks_have_in_common(void) {
    struct view_rows rows = rows_by(BY_FUNCTION, NULL);
    CHECK_EQUAL(rows.count, 4);
    CHECK_TEXT(rows.rows[0].function, "load_level");
    CHECK_EQUAL(live_of(&rows.rows[0]), 1840);
    CHECK_TEXT(rows.rows[0].heap, VIEW_SEVERAL);
    CHECK_TEXT(rows.rows[0].type, VIEW_SEVERAL);
    CHECK_TEXT(rows.rows[0].scope, "load; level");
    view_rows_free(&rows);
    rows = rows_by(BY_LINE, NULL);
    CHECK_EQUAL(live_of(&rows.rows[0]), 1840);
    CHECK_TEXT(rows.rows[0].function, "load_level");
    view_rows_free(&rows);
}

static void check_groups(enum view_by by, const char *const *names, const double *live, size_t count) {
    struct view_rows rows = rows_by(by, NULL);
    CHECK_EQUAL(rows.count, count);
    for (size_t i = 0; i < rows.count && i < count; i++) {
        const struct view_row *row = &rows.rows[i];
        CHECK_TEXT(by == BY_HEAP ? row->heap : by == BY_TYPE ? row->type : row->scope, names[i]);
        CHECK_EQUAL(live_of(row), live[i]);
        CHECK(!row->function && !row->module);
    }
    view_rows_free(&rows);
}

static void rows_are_made_by_heap_type_and_innermost_scope(void) {
    check_groups(BY_HEAP, (const char *[]){"textures", "malloc"}, (double[]){1000, 920}, 2);
    check_groups(BY_TYPE, (const char *[]){"struct pixel", VIEW_NO_TYPE, "struct level"},
        (double[]){1000, 580, 340}, 3);
    check_groups(
        BY_SCOPE, (const char *[]){"load; level", "request", VIEW_NO_SCOPE}, (double[]){1840, 50, 30}, 3);
}

static void filters_know_names_with_and_without_their_kind(void) {
    CHECK_EQUAL(kept_by("^struct pixel$"), 1000);
    CHECK_EQUAL(kept_by("^start$"), 1800);
    CHECK_EQUAL(kept_by("^\\[scope start\\]$"), 1800);
    CHECK_EQUAL(kept_by("worker"), 1890);
    CHECK_EQUAL(kept_by("^textures$"), 1000);
    CHECK_EQUAL(kept_by("\\[heap malloc\\]"), 920);
    CHECK_EQUAL(kept_by("^request$"), 50);
    CHECK_EQUAL(kept_by("no such name"), 0);
}

static const struct view_node *child(const struct view_node *node, const char *function) {
    for (size_t i = 0; node && i < node->child_count; i++)
        if (strcmp(node->children[i].function, function) == 0) return &node->children[i];
    fprintf(stderr, "no '%s' below '%s'\n", function, node && node->function ? node->function : "");
    return NULL;
}

static void the_tree_goes_from_the_heap_over_scopes_and_calls_to_the_type(void) {
    struct view_query query = {.sort = SORT_LIVE};
    struct view_node *root = view_tree_query(labelled.model, labelled.resolver, &query, NULL);
    CHECK_EQUAL(root->child_count, 2);
    static const char *const way[] = {"[heap malloc]", "[thread worker]", "read_config", "[scope start]",
        "load_level", "[scope load; level]", "[type struct level]"};
    static const double live[] = {920, 890, 800, 800, 800, 800, 300};
    const struct view_node *node = root;
    for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
        node = child(node, way[i]);
        if (!CHECK(node != NULL)) break;
        CHECK_EQUAL(node->figures.live_bytes.value, live[i]);
    }
    if (node) CHECK_EQUAL(node->child_count, 0);
    const struct view_node *thread = child(child(root, "[heap malloc]"), "[thread worker]");
    CHECK_EQUAL(child(thread, "[scope request]")->child_count, 0);
    view_tree_free(root);
}

/* A scope may have the name of anything. */
static const char *site_of(const uint64_t *words, uint32_t count) {
    struct source_frames frames = {0};
    struct model_stack stack = {.frames = words, .frame_count = count};
    source_frames_expand(&frames, labelled.resolver, &stack);
    const char *function = frames.frames[source_frames_site(&frames, false)].symbol->function;
    source_frames_free(&frames);
    return function;
}

static void a_scope_is_the_site_only_where_no_call_is_known(void) {
    uint64_t inner = scope(labelled.load), outer = scope(labelled.start), worker = thread(labelled.worker);
    uint64_t call = call_in(load_level), cut = (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT, nowhere = 0x1000;
    CHECK_TEXT(site_of((const uint64_t[]){call, inner, outer}, 3), "load_level");
    CHECK_TEXT(site_of((const uint64_t[]){inner, call, outer}, 3), "load_level");
    CHECK_TEXT(site_of((const uint64_t[]){inner, cut, outer, call}, 4), "[cut]");
    CHECK_TEXT(site_of((const uint64_t[]){nowhere, call, inner}, 3), "[0xfff]");
    CHECK_TEXT(site_of((const uint64_t[]){inner, outer, worker}, 3), "[scope load; level]");
    CHECK_TEXT(site_of((const uint64_t[]){cut, outer, worker}, 3), "[scope start]");
    CHECK_TEXT(site_of((const uint64_t[]){nowhere, outer}, 2), "[scope start]");
    CHECK_TEXT(site_of((const uint64_t[]){worker}, 1), "[thread worker]");
    CHECK_TEXT(site_of((const uint64_t[]){scope(9999)}, 1), "[scope ?]");
}

static void heaps_and_names_are_counted(void) {
    size_t count;
    struct heap_totals *heaps = heap_totals_make(labelled.model, &count);
    CHECK_EQUAL(count, 2);
    CHECK_TEXT(heaps[0].name, "malloc");
    CHECK_TEXT(heaps[1].name, "textures");
    CHECK_EQUAL(heaps[0].figures.live_bytes.value, 920);
    CHECK_EQUAL(heaps[1].figures.live_bytes.value, 1000);
    CHECK_EQUAL(heaps[1].rate, 1);
    free(heaps);
    struct label_counts counts;
    stack_labels_count(labelled.model, &counts);
    CHECK_EQUAL(counts.types, 2);
    CHECK_EQUAL(counts.scopes, 3);
    CHECK_EQUAL(counts.threads, 1);
}

/* Two processes number their names differently. */
static void names_of_several_processes_are_one_if_they_are_equal(void) {
    struct made other = made_new(1, 0);
    made_name(&other, "anything");
    uint32_t request = made_name(&other, "request"), name = made_name(&other, "textures");
    uint32_t textures = made_heap(&other, name, 4096);
    struct stack_record *record = made_stack(&other, (const uint64_t[]){scope(request)}, 1, 0, NULL);
    record->heap = textures;
    record->alloc_bytes = 7000 * BYTE_ONE;
    record->alloc_objects = OBJECT_ONE;
    record->samples = 1;
    made_write(&other, in_folder(labelled.folder, "other.mscope"));
    made_free(&other);

    struct labelled both = {0};
    CHECK(load_model(labelled.folder, &both.model, NULL) == 0);
    both.resolver = resolver_new(both.model);
    struct view_rows rows;
    struct view_query query = {.by = BY_SCOPE, .sort = SORT_LIVE};
    CHECK(view_rows_query(both.model, both.resolver, &query, &rows, NULL) == 0);
    CHECK_EQUAL(rows.count, 3);
    CHECK_TEXT(rows.rows[0].scope, "request");
    CHECK_EQUAL(live_of(&rows.rows[0]), 7050);
    view_rows_free(&rows);
    size_t count;
    struct heap_totals *heaps = heap_totals_make(both.model, &count);
    CHECK_EQUAL(count, 2);
    CHECK_EQUAL(heaps[1].figures.live_bytes.value, 8000);
    CHECK_EQUAL(heaps[1].rate, 4096);
    free(heaps);
    resolver_free(both.resolver);
    model_free(both.model);
}

int main(void) {
    labelled = labelled_new();
    labelled_load(&labelled);
    every_grouping_adds_up_to_the_total();
    a_site_has_a_row_for_each_heap_and_type();
    other_groupings_tell_what_their_stacks_have_in_common();
    rows_are_made_by_heap_type_and_innermost_scope();
    filters_know_names_with_and_without_their_kind();
    the_tree_goes_from_the_heap_over_scopes_and_calls_to_the_type();
    a_scope_is_the_site_only_where_no_call_is_known();
    heaps_and_names_are_counted();
    names_of_several_processes_are_one_if_they_are_equal();
    labelled_free(&labelled);
    return check_result();
}
