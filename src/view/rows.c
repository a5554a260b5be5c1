#include "base/hash_index.h"
#include "base/memory.h"
#include "base/path.h"
#include "model/stack_labels.h"
#include "view/frame_filter.h"
#include "view/name_key.h"
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct estimate view_sort_estimate(const struct figures *figures, enum view_sort sort) {
    switch (sort) {
    case SORT_LIVE:
        return figures->live_bytes;
    case SORT_PEAK:
        return figures->at_peak_bytes;
    case SORT_TOTAL:
        return figures->total_bytes;
    case SORT_ALLOCS:
        return figures->total_objects;
    case SORT_TEMPORARY:
        break;
    }
    double all = figures->total_objects.value, some = figures->temporary_objects;
    return (struct estimate){some, all > 0 ? figures->total_objects.variance * some / all : 0, 0};
}

double view_sort_value(const struct figures *figures, enum view_sort sort) {
    return view_sort_estimate(figures, sort).value;
}

#define PROCESS_TEXT_SIZE 96

/* The names of the processes: "bash (process 4711)". The caller frees them. A process that became another by exec has
 * its number in both recordings, and another name. */
static char *name_processes(const struct model *model) {
    char *names = memory_allocate((model->process_count + 1) * PROCESS_TEXT_SIZE);
    for (size_t i = 0; i < model->process_count; i++)
        snprintf(names + i * PROCESS_TEXT_SIZE, PROCESS_TEXT_SIZE, "%.64s (process %d)",
            path_last_part(model->processes[i].executable), model->processes[i].pid);
    return names;
}

/* Rows under construction, and an index over them by what they are grouped by. */
struct grouping {
    struct view_query query;
    struct view_row *rows;
    double *largest_value; /* for each row, the sort value of its largest stack */
    size_t count, capacity;
    struct hash_index index; /* of `rows`, by their keys; empty for BY_STACK, whose rows are all distinct */
    char *process_names;     /* PROCESS_TEXT_SIZE bytes each; for BY_PROCESS */
    size_t last;             /* the row of the last stack: the next stack mostly has the same one */
};

/* The key of a stack: the naming fields of its row that the grouping looks at. The others are empty. */
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
    case BY_PROCESS:
        break;
    }
    /* Frames in no module differ by their names: "[cut]" and "[dropped]" must not become one row. */
    if (by == BY_MODULE && !module) key.module = symbol->file; /* an interpreter's code */
    if (!key.module && !key.file) key.function = symbol->function;
    return key;
}

uint64_t view_row_hash(const struct view_row *key) {
    uint64_t hash = name_key_hash(NAME_KEY_START, key->function);
    hash = name_key_hash(name_key_hash(hash, key->file), key->module) + (uint64_t)key->line;
    return name_key_hash(name_key_hash(name_key_hash(hash, key->heap), key->type), key->scope);
}

/* Which naming fields are part of the key of a grouping. */
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

/* Whether the last row has this key, told by the addresses of the names: a quick test that may say no to an equal
 * key. Only rows by site hold their whole key. */
static bool is_last_row(const struct grouping *grouping, const struct view_row *key) {
    if (grouping->query.by != BY_SITE || grouping->last >= grouping->count) return false;
    const struct view_row *row = &grouping->rows[grouping->last];
    return row->function == key->function && row->file == key->file && row->line == key->line &&
           row->module == key->module && row->heap == key->heap && row->type == key->type;
}

struct search {
    const struct grouping *grouping;
    const struct view_row *key;
};

static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    struct view_row other = view_row_key(search->grouping->query.by, &search->grouping->rows[number]);
    return view_row_equal(&other, search->key);
}

static struct view_row *add_row(struct grouping *grouping, const struct view_row *key) {
    if (grouping->count == grouping->capacity) {
        grouping->capacity = grouping->capacity ? 2 * grouping->capacity : 64;
        grouping->rows = memory_reallocate(grouping->rows, grouping->capacity * sizeof *grouping->rows);
        grouping->largest_value =
            memory_reallocate(grouping->largest_value, grouping->capacity * sizeof *grouping->largest_value);
    }
    struct view_row *row = &grouping->rows[grouping->count];
    *row = *key;
    figures_clear(&row->figures);
    grouping->largest_value[grouping->count++] = -1;
    return row;
}

/* The row for `key`, and whether it was made for it. */
static struct view_row *find_or_add_row(
    struct grouping *grouping, const struct view_row *key, bool *ret_is_new) {
    *ret_is_new = grouping->query.by == BY_STACK;
    if (*ret_is_new) return add_row(grouping, key);
    if (is_last_row(grouping, key)) return &grouping->rows[grouping->last];
    uint64_t hash = view_row_hash(key);
    uint32_t number = hash_index_find(&grouping->index, hash, is_equal, &(struct search){grouping, key});
    if (number != HASH_INDEX_NONE) return &grouping->rows[number];
    hash_index_add(&grouping->index, hash, (uint32_t)grouping->count);
    *ret_is_new = true;
    return add_row(grouping, key);
}

static void note_name(const char **name, const char *next, bool is_new, const char *several) {
    if (is_new)
        *name = next;
    else if (!name_key_equal(*name, next))
        *name = several;
}

/* Sets the naming fields that are not part of the key: to the name that all stacks of the row share, if they do. */
static void note_names(struct view_row *row, enum view_by by, const struct source_frame *site,
    const struct stack_labels *labels, bool is_new) {
    if (!key_has_function(by, row->line)) note_name(&row->function, site->symbol->function, is_new, NULL);
    if (!key_has_heap(by)) note_name(&row->heap, labels->heap, is_new, VIEW_SEVERAL);
    if (!key_has_type(by)) note_name(&row->type, labels->type, is_new, VIEW_SEVERAL);
    if (!key_has_scope(by)) note_name(&row->scope, labels->scope, is_new, VIEW_SEVERAL);
}

static void add_stack(struct grouping *grouping, const struct source_frames *frames,
    const struct model_stack *stack, struct stack_labels labels) {
    const struct source_frame *site = &frames->frames[source_frames_site(frames, grouping->query.raw_sites)];
    struct view_row key = key_of(grouping->query.by, site, &labels);
    if (grouping->query.by == BY_PROCESS)
        key = (struct view_row){.function = grouping->process_names + stack->process * PROCESS_TEXT_SIZE};
    bool is_new;
    struct view_row *row = find_or_add_row(grouping, &key, &is_new);
    grouping->last = (size_t)(row - grouping->rows);
    note_names(row, grouping->query.by, site, &labels, is_new);
    figures_add(&row->figures, &stack->figures);
    double value = view_sort_value(&stack->figures, grouping->query.sort);
    if (value > grouping->largest_value[row - grouping->rows]) {
        grouping->largest_value[row - grouping->rows] = value;
        row->largest = stack;
    }
}

static void group_stacks(const struct model *model, struct resolver *resolver, struct grouping *grouping,
    struct frame_filter *filter) {
    struct source_frames frames = {0};
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (filter->on)
            source_frames_expand_labelled(&frames, model, resolver, stack);
        else
            source_frames_expand_to_site(&frames, resolver, stack);
        if (frame_filter_keeps(filter, &frames))
            add_stack(grouping, &frames, stack, stack_labels_of(model, stack));
    }
    source_frames_free(&frames);
}

#define THREAD_TEXT_SIZE 64

/* A row for each thread. Returns the text of their names, which the rows point into. */
static char *list_threads(
    const struct model *model, struct grouping *grouping, const struct frame_filter *filter) {
    char *text = memory_allocate((model->thread_count + 1) * THREAD_TEXT_SIZE);
    grouping->rows = memory_allocate((model->thread_count + 1) * sizeof *grouping->rows);
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        char *name = text + i * THREAD_TEXT_SIZE;
        snprintf(
            name, THREAD_TEXT_SIZE, "%.16s (thread %d)", thread->name[0] ? thread->name : "?", thread->tid);
        if (!frame_filter_matches_text(filter, name)) continue;
        struct view_row *row = &grouping->rows[grouping->count++];
        row->function = name;
        figures_clear(&row->figures);
        row->figures.total_bytes.value = thread->exact_bytes;
        row->figures.samples = thread->samples;
    }
    return text;
}

/* Largest first. Rows with equal values are sorted by name, so that a recording always gives the same report. */
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

/* The heap's peak of the processes with this name: their sum if a program executed itself. */
static double peak_of_processes(
    const struct model *model, const struct grouping *grouping, const char *name) {
    double peak = 0;
    for (size_t i = 0; i < model->process_count; i++)
        if (strcmp(grouping->process_names + i * PROCESS_TEXT_SIZE, name) == 0)
            peak += model->processes[i].peak.value;
    return peak;
}

/* The stacks of a row may have had their peaks at different times, so the sum of these is an upper bound. So is the
 * peak of the whole heap. */
static void bound_peaks(const struct model *model, struct grouping *grouping) {
    double bound = model->totals.peak_at_most;
    for (size_t i = 0; i < grouping->count && grouping->query.by == BY_PROCESS; i++)
        grouping->rows[i].figures.own_peak_bytes =
            peak_of_processes(model, grouping, grouping->rows[i].function);
    for (size_t i = 0; i < grouping->count && bound > 0; i++)
        if (grouping->rows[i].figures.own_peak_bytes > bound)
            grouping->rows[i].figures.own_peak_bytes = bound;
}

int view_rows_query(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct view_rows *ret_rows, struct problem *problem) {
    struct frame_filter filter;
    int r = frame_filter_make(query->filter, &filter, problem);
    if (r < 0) return r;
    struct grouping grouping = {.query = *query};
    char *text = NULL;
    if (query->by == BY_THREAD)
        text = list_threads(model, &grouping, &filter);
    else if (query->by == BY_PROCESS)
        text = grouping.process_names = name_processes(model);
    if (query->by != BY_THREAD) group_stacks(model, resolver, &grouping, &filter);
    frame_filter_free(&filter);
    free(grouping.largest_value);
    hash_index_free(&grouping.index);
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
