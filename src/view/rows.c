#include "model/stack_labels.h"
#include "view/name_key.h"
#include "view/source_frames.h"
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double view_sort_value(const struct figures *figures, enum view_sort sort) {
    switch (sort) {
    case SORT_LIVE:
        return figures->live_bytes.value;
    case SORT_PEAK:
        return figures->at_peak_bytes.value;
    case SORT_TOTAL:
        return figures->total_bytes.value;
    case SORT_ALLOCS:
        return figures->total_objects.value;
    case SORT_TEMPORARY:
        return figures->temporary_objects;
    }
    return 0;
}

/* Rows under construction, and an index over them by what they are grouped by. */
struct grouping {
    struct view_query query;
    struct view_row *rows;
    double *largest_value; /* of the row's largest stack */
    size_t count, capacity;
    uint32_t *index; /* row number + 1, open addressing */
    size_t index_size;
    size_t last; /* the row of the last stack: that of the next one is mostly the same */
};

/* The key is the row's own naming fields; those that the grouping does not look at are empty. */
static struct view_row key_of(
    enum view_by by, const struct source_frame *frame, const struct stack_labels *labels) {
    const struct symbol *symbol = frame->symbol;
    const char *module = frame->module ? frame->module->path : NULL;
    bool has_line = symbol->file && symbol->line > 0;
    struct view_row key = {.module = module};
    switch (by) {
    case BY_SITE:
    case BY_STACK:
        key.function = symbol->function;
        key.file = symbol->file;
        key.line = symbol->line;
        key.heap = labels->heap;
        key.type = labels->type;
        break;
    case BY_HEAP:
        return (struct view_row){.heap = labels->heap};
    case BY_TYPE:
        return (struct view_row){.type = labels->type ? labels->type : VIEW_NO_TYPE};
    case BY_SCOPE:
        return (struct view_row){.scope = labels->scope ? labels->scope : VIEW_NO_SCOPE};
    case BY_LINE:
        if (has_line) {
            key.file = symbol->file;
            key.line = symbol->line;
        } else {
            key.function = symbol->function;
        }
        break;
    case BY_FUNCTION:
        key.function = symbol->function;
        break;
    case BY_FILE:
        key.file = symbol->file;
        break;
    case BY_MODULE:
    case BY_THREAD:
        break;
    }
    /* Frames that lie in no module are told apart by their names: "[cut]" and "[dropped]" are not one thing.
     */
    if (by == BY_MODULE && !module) key.module = symbol->file; /* an interpreter's code */
    if (!key.module && !key.file) key.function = symbol->function;
    return key;
}

uint64_t view_row_hash(const struct view_row *key) {
    uint64_t hash = name_key_hash(NAME_KEY_START, key->function);
    hash = name_key_hash(name_key_hash(hash, key->file), key->module) + (uint64_t)key->line;
    hash = name_key_hash(name_key_hash(name_key_hash(hash, key->heap), key->type), key->scope);
    return hash ^ hash >> 29;
}

/* What the rows of a grouping say of themselves beyond the key. */
static bool key_has_function(enum view_by by, int line) {
    return by != BY_LINE || !line;
}
static bool key_has_heap(enum view_by by) {
    return by == BY_SITE || by == BY_STACK || by == BY_HEAP;
}
static bool key_has_type(enum view_by by) {
    return by == BY_SITE || by == BY_STACK || by == BY_TYPE;
}
static bool key_has_scope(enum view_by by) {
    return by == BY_SCOPE;
}

struct view_row view_row_key(enum view_by by, const struct view_row *row) {
    return (struct view_row){.function = key_has_function(by, row->line) ? row->function : NULL,
        .file = row->file,
        .module = row->module,
        .line = row->line,
        .heap = key_has_heap(by) ? row->heap : NULL,
        .type = key_has_type(by) ? row->type : NULL,
        .scope = key_has_scope(by) ? row->scope : NULL};
}

bool view_row_equal(const struct view_row *a, const struct view_row *b) {
    return a->line == b->line && name_key_equal(a->function, b->function) &&
           name_key_equal(a->file, b->file) && name_key_equal(a->module, b->module) &&
           name_key_equal(a->heap, b->heap) && name_key_equal(a->type, b->type) &&
           name_key_equal(a->scope, b->scope);
}

static bool grow(struct grouping *grouping) {
    size_t capacity = grouping->capacity ? 2 * grouping->capacity : 64;
    void *rows = realloc(grouping->rows, capacity * sizeof *grouping->rows);
    if (rows) grouping->rows = rows;
    void *values = realloc(grouping->largest_value, capacity * sizeof *grouping->largest_value);
    if (values) grouping->largest_value = values;
    uint32_t *index = calloc(2 * capacity, sizeof *index);
    if (!rows || !values || !index) {
        free(index);
        return false;
    }
    free(grouping->index);
    grouping->index = index;
    grouping->index_size = 2 * capacity;
    grouping->capacity = capacity;
    for (size_t i = 0; i < grouping->count; i++) {
        struct view_row key = view_row_key(grouping->query.by, &grouping->rows[i]);
        size_t slot = view_row_hash(&key) & (grouping->index_size - 1);
        while (index[slot]) slot = (slot + 1) & (grouping->index_size - 1);
        index[slot] = (uint32_t)i + 1;
    }
    return true;
}

/* By where the names are, not by what they say: sites alone, whose rows hold their whole key. */
static bool is_last_row(const struct grouping *grouping, const struct view_row *key) {
    if (grouping->query.by != BY_SITE || grouping->last >= grouping->count) return false;
    const struct view_row *row = &grouping->rows[grouping->last];
    return row->function == key->function && row->file == key->file && row->line == key->line &&
           row->module == key->module && row->heap == key->heap && row->type == key->type;
}

/* The row for `key`, made if need be, with whether that was so. NULL: out of memory. */
static struct view_row *find_row(struct grouping *grouping, const struct view_row *key, bool *ret_is_new) {
    if (grouping->count == grouping->capacity && !grow(grouping)) return NULL;
    bool distinct = grouping->query.by == BY_STACK;
    *ret_is_new = false;
    if (is_last_row(grouping, key)) return &grouping->rows[grouping->last];
    size_t slot = view_row_hash(key) & (grouping->index_size - 1);
    for (; grouping->index[slot]; slot = (slot + 1) & (grouping->index_size - 1)) {
        struct view_row *row = &grouping->rows[grouping->index[slot] - 1];
        struct view_row other = view_row_key(grouping->query.by, row);
        if (!distinct && view_row_equal(&other, key)) return row;
    }
    struct view_row *row = &grouping->rows[grouping->count];
    *row = *key;
    figures_clear(&row->figures);
    grouping->largest_value[grouping->count] = -1;
    grouping->index[slot] = (uint32_t)++grouping->count;
    *ret_is_new = true;
    return row;
}

static void note_name(const char **name, const char *next, bool is_new, const char *several) {
    if (is_new)
        *name = next;
    else if (!name_key_equal(*name, next))
        *name = several;
}

/* What a row does not group by it names where all its stacks agree. */
static void note_names(struct view_row *row, enum view_by by, const struct source_frame *site,
    const struct stack_labels *labels, bool is_new) {
    if (!key_has_function(by, row->line)) note_name(&row->function, site->symbol->function, is_new, NULL);
    if (!key_has_heap(by)) note_name(&row->heap, labels->heap, is_new, VIEW_SEVERAL);
    if (!key_has_type(by)) note_name(&row->type, labels->type, is_new, VIEW_SEVERAL);
    if (!key_has_scope(by)) note_name(&row->scope, labels->scope, is_new, VIEW_SEVERAL);
}

static bool add_stack(struct grouping *grouping, const struct source_frames *frames,
    const struct model_stack *stack, struct stack_labels labels) {
    const struct source_frame *site = &frames->frames[source_frames_site(frames, grouping->query.raw_sites)];
    struct view_row key = key_of(grouping->query.by, site, &labels);
    bool is_new;
    struct view_row *row = find_row(grouping, &key, &is_new);
    if (!row) return false;
    grouping->last = (size_t)(row - grouping->rows);
    note_names(row, grouping->query.by, site, &labels, is_new);
    figures_add(&row->figures, &stack->figures);
    double value = view_sort_value(&stack->figures, grouping->query.sort);
    if (value > grouping->largest_value[row - grouping->rows]) {
        grouping->largest_value[row - grouping->rows] = value;
        row->largest = stack;
    }
    return true;
}

static int out_of_memory(struct problem *problem) {
    return problem_set(
        problem, PROBLEM_FAILURE, "narrow the view with --filter", "out of memory while grouping stacks");
}

static bool group_stacks(const struct model *model, struct resolver *resolver, struct grouping *grouping,
    struct frame_filter *filter) {
    struct source_frames frames = {0};
    bool fine = true;
    for (size_t i = 0; i < model->stack_count && fine; i++) {
        const struct model_stack *stack = &model->stacks[i];
        fine = filter->on ? source_frames_expand_labelled(&frames, model, resolver, stack)
                          : source_frames_expand_to_site(&frames, resolver, stack);
        if (fine && frame_filter_keeps(filter, &frames))
            fine = add_stack(grouping, &frames, stack, stack_labels_of(model, stack));
    }
    source_frames_free(&frames);
    return fine;
}

#define THREAD_NAME_SIZE 64

static bool list_threads(const struct model *model, struct grouping *grouping,
    const struct frame_filter *filter, char **ret_text) {
    char *text = calloc(model->thread_count + 1, THREAD_NAME_SIZE);
    grouping->rows = calloc(model->thread_count + 1, sizeof *grouping->rows);
    *ret_text = text;
    if (!text || !grouping->rows) return false;
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        char *name = text + i * THREAD_NAME_SIZE;
        snprintf(
            name, THREAD_NAME_SIZE, "%.16s (thread %d)", thread->name[0] ? thread->name : "?", thread->tid);
        if (!frame_filter_matches_text(filter, name)) continue;
        struct view_row *row = &grouping->rows[grouping->count++];
        row->function = name;
        figures_clear(&row->figures);
        row->figures.total_bytes.value = thread->exact_bytes;
        row->figures.samples = thread->samples;
    }
    return true;
}

/* Largest first; equal values by name, so that the same recording prints the same report. */
static int compare_rows(const void *left, const void *right, void *context) {
    const struct view_row *a = left, *b = right;
    enum view_sort sort = *(enum view_sort *)context;
    double value_a = view_sort_value(&a->figures, sort), value_b = view_sort_value(&b->figures, sort);
    if (value_a != value_b) return value_a < value_b ? 1 : -1;
    if (a->figures.total_bytes.value != b->figures.total_bytes.value)
        return a->figures.total_bytes.value < b->figures.total_bytes.value ? 1 : -1;
    int order = name_key_compare(a->function, b->function);
    if (!order) order = name_key_compare(a->file, b->file);
    if (!order) order = a->line - b->line;
    if (!order) order = name_key_compare(a->module, b->module);
    if (!order) order = name_key_compare(a->heap, b->heap);
    if (!order) order = name_key_compare(a->type, b->type);
    return order ? order : name_key_compare(a->scope, b->scope);
}

/* The peaks of a set's stacks need not have been at one time, but no set was ever larger than the whole heap.
 */
static void bound_peaks(const struct model *model, struct grouping *grouping) {
    double bound = model->totals.peak_bytes;
    for (size_t i = 0; i < grouping->count && bound > 0; i++)
        if (grouping->rows[i].figures.peak_bytes > bound) grouping->rows[i].figures.peak_bytes = bound;
}

int view_rows_query(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct view_rows *ret_rows, struct problem *problem) {
    struct frame_filter filter;
    int r = frame_filter_make(query->filter, &filter, problem);
    if (r < 0) return r;
    struct grouping grouping = {.query = *query};
    char *text = NULL;
    bool fine = query->by == BY_THREAD ? list_threads(model, &grouping, &filter, &text)
                                       : group_stacks(model, resolver, &grouping, &filter);
    frame_filter_free(&filter);
    free(grouping.largest_value);
    free(grouping.index);
    if (!fine) {
        free(grouping.rows);
        free(text);
        return out_of_memory(problem);
    }
    bound_peaks(model, &grouping);
    enum view_sort sort = query->by == BY_THREAD ? SORT_TOTAL : query->sort;
    if (grouping.count) qsort_r(grouping.rows, grouping.count, sizeof *grouping.rows, compare_rows, &sort);
    *ret_rows = (struct view_rows){.rows = grouping.rows, .count = grouping.count, .text = text};
    figures_clear(&ret_rows->sum);
    for (size_t i = 0; i < grouping.count; i++) figures_add(&ret_rows->sum, &grouping.rows[i].figures);
    return 0;
}

int view_rows_make(const struct model *model, struct resolver *resolver, enum view_by by, enum view_sort sort,
    const char *filter, struct view_rows *ret_rows, struct problem *problem) {
    struct view_query query = {.by = by, .sort = sort, .filter = filter};
    return view_rows_query(model, resolver, &query, ret_rows, problem);
}

void view_rows_free(struct view_rows *rows) {
    free(rows->rows);
    free(rows->text);
    *rows = (struct view_rows){0};
}
