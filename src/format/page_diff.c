#include "format/page_diff.h"
#include "base/memory.h"
#include "format/page_tree.h"
#include "format/writers.h"

#include <stdlib.h>
#include <string.h>

#define LINES_MAX 10000 /* lines that are listed for each value; the page says how many there are in all */
#define NO_LINE   UINT32_MAX

enum { FRESH, BASE }; /* sides of the stack tree, parts of the flame */

struct page {
    const struct page_comparison *comparison;
    struct page_tree tree;
    struct diff diffs[DIFF_VALUES];
    const struct view_row **lines; /* all lines that are listed for some value, by their numbers */
    uint32_t line_count;
    uint32_t *line_number; /* by place_of */
    bool exact;
    double byte_scale, object_scale;
};

static const char *const value_names[DIFF_VALUES] = {
    [DIFF_LIVE] = "live_bytes",
    [DIFF_PEAK] = "peak_bytes",
    [DIFF_TOTAL] = "total_bytes",
    [DIFF_OBJECTS] = "live_objects",
    [DIFF_PEAK_OBJECTS] = "peak_objects",
    [DIFF_ALLOCATIONS] = "total_objects",
};

/* ---- lines ---- */

static bool is_fresh(const struct page *page, const struct view_row *row) {
    const struct view_rows *rows = page->comparison->fresh.diff.rows;
    return row >= rows->rows && row < rows->rows + rows->count;
}

/* A number of the row among the rows of both sides. */
static size_t place_of(const struct page *page, const struct view_row *row) {
    const struct view_rows *fresh = page->comparison->fresh.diff.rows;
    const struct view_rows *base = page->comparison->base.diff.rows;
    return is_fresh(page, row) ? (size_t)(row - fresh->rows) : fresh->count + (size_t)(row - base->rows);
}

static size_t lines_written(const struct diff *diff) {
    return diff->count < LINES_MAX ? diff->count : LINES_MAX;
}

static void make_diffs(struct page *page) {
    const struct page_comparison *comparison = page->comparison;
    size_t places = comparison->base.diff.rows->count + comparison->fresh.diff.rows->count;
    page->lines = memory_allocate_array(places, sizeof *page->lines);
    page->line_number = memory_allocate_array(places, sizeof *page->line_number);
    for (size_t i = 0; i < places; i++) page->line_number[i] = NO_LINE;
    for (int value = 0; value < DIFF_VALUES; value++) {
        struct diff *diff = &page->diffs[value];
        diff_make(
            &comparison->base.diff, &comparison->fresh.diff, (enum diff_value)value, comparison->by, diff);
        for (size_t i = 0; i < lines_written(diff); i++) {
            uint32_t *number = &page->line_number[place_of(page, diff->rows[i].row)];
            if (*number != NO_LINE) continue;
            page->lines[page->line_count] = diff->rows[i].row;
            *number = page->line_count++;
        }
    }
}

/* The frame of the graph that is the site of a line. FLAME_NONE: lines are grouped by something that is no
 * function. */
static uint32_t frame_of(const struct page *page, const struct view_row *row) {
    const struct page_comparison *comparison = page->comparison;
    bool fresh = is_fresh(page, row);
    enum view_by by = comparison->by;
    if ((by != BY_FUNCTION && by != BY_SITE && by != BY_LINE) || !row->function || !row->largest)
        return FLAME_NONE;
    const struct model *model = fresh ? comparison->fresh.model : comparison->base.model;
    return page->tree.flame.parts[fresh ? FRESH : BASE].stack_site[row->largest - model->stacks];
}

static void choose_frames(struct page *page) {
    uint32_t *frames = memory_allocate_array(page->line_count, sizeof *frames), count = 0;
    for (uint32_t i = 0; i < page->line_count; i++) {
        uint32_t frame = frame_of(page, page->lines[i]);
        if (frame != FLAME_NONE) frames[count++] = frame;
    }
    page_tree_choose_frames(&page->tree, frames, count);
    free(frames);
}

static void write_text(struct page_tree *tree, const char *text) {
    json_integer(&tree->json, text ? (int64_t)page_tree_text(tree, text) : -1);
}

/* Nine numbers for each line: function, short name, file, line, module, heap, type, scope, frame. */
static void write_line_names(struct page *page) {
    struct page_tree *tree = &page->tree;
    bool has_heaps = page->comparison->by == BY_HEAP || model_has_heaps(page->comparison->base.model) ||
                     model_has_heaps(page->comparison->fresh.model);
    json_key(&tree->json, "names");
    json_array(&tree->json);
    for (uint32_t i = 0; i < page->line_count; i++) {
        const struct view_row *row = page->lines[i];
        uint32_t frame = frame_of(page, row);
        write_text(tree, row->function);
        json_integer(&tree->json, row->function ? (int64_t)page_tree_short_name(tree, row->function) : -1);
        json_integer(&tree->json, page_tree_file(tree, row->file));
        json_integer(&tree->json, row->line);
        json_integer(&tree->json, page_tree_module(tree, row->module));
        write_text(tree, has_heaps ? row->heap : NULL);
        write_text(tree, row->type);
        write_text(tree, row->scope);
        json_integer(&tree->json, frame == FLAME_NONE ? -1 : (int64_t)tree->frame_number[frame]);
    }
    json_array_end(&tree->json);
}

/* Four numbers: base, new, half the width of the interval of the change, 1 if it is significant. */
static void write_change(struct json *json, const struct diff_row *row) {
    json_number(json, row->base.value);
    json_number(json, row->fresh.value);
    json_number(json, row->error);
    json_integer(json, row->significant);
}

static void write_diff(struct page *page, const struct diff *diff) {
    struct json *json = &page->tree.json;
    json_object(json);
    json_key_integer(json, "count", (int64_t)diff->count);
    json_key_integer(json, "significant", (int64_t)diff->significant_count);
    json_key(json, "total");
    json_array(json);
    write_change(json, &diff->total);
    json_array_end(json);
    json_key(json, "rows"); /* five numbers for each: its line, and those of the change */
    json_array(json);
    for (size_t i = 0; i < lines_written(diff); i++) {
        json_integer(json, page->line_number[place_of(page, diff->rows[i].row)]);
        write_change(json, &diff->rows[i]);
    }
    json_array_end(json);
    json_object_end(json);
}

static void write_lines(struct page *page) {
    struct json *json = &page->tree.json;
    json_key(json, "lines");
    json_object(json);
    write_line_names(page);
    json_key(json, "values");
    json_object(json);
    for (int value = 0; value < DIFF_VALUES; value++) {
        json_key(json, value_names[value]);
        write_diff(page, &page->diffs[value]);
    }
    json_object_end(json);
    json_object_end(json);
}

/* ---- rows of the tree ---- */

static void write_columns(struct page *page) {
    struct json *json = &page->tree.json;
    json_key(json, "columns");
    json_array(json);
    json_string(json, "node");
    for (int value = 0; value < DIFF_VALUES; value++)
        for (int part = FRESH; part <= BASE; part++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", part == BASE ? "base_" : "", value_names[value]);
            json_string(json, name);
            strcat(name, "_variance");
            if (!page->exact) json_string(json, name);
        }
    json_array_end(json);
}

static void write_estimate(
    struct page *page, const struct figures *figures, enum diff_value value, int part) {
    const struct page_side *side = part == BASE ? &page->comparison->base : &page->comparison->fresh;
    struct estimate estimate = diff_figure(figures, value, &side->diff);
    double scale = diff_counts_objects(value) ? page->object_scale : page->byte_scale;
    json_number(&page->tree.json, estimate.value * scale);
    if (!page->exact) page_tree_write_variance(&page->tree.json, estimate.variance);
}

static void write_rows(struct page *page) {
    const struct flame *flame = &page->tree.flame;
    struct json *json = &page->tree.json;
    write_columns(page);
    json_key(json, "rows");
    json_array(json);
    for (uint32_t i = 0, before = 0; i < flame->node_count; i++) {
        uint32_t row = flame->nodes[i].row;
        if (row == FLAME_NONE) continue;
        json_integer(json, i - before);
        before = i;
        for (int value = 0; value < DIFF_VALUES; value++)
            for (int part = FRESH; part <= BASE; part++)
                write_estimate(page, &flame->parts[part].rows[row], (enum diff_value)value, part);
    }
    json_array_end(json);
}

/* ---- the whole page ---- */

static void write_side(struct page *page, const char *key, const struct page_side *side) {
    struct json *json = &page->tree.json;
    json_key(json, key);
    json_object(json);
    json_key_string(json, "source", page_tree_path(page->tree.options, side->source, 1));
    json_key_boolean(json, "exact", side->model->exact);
    json_key_boolean(json, "at_peak", side->diff.at_peak);
    if (side->seconds >= 0) json_key_number(json, "seconds", side->seconds);
    json_key_number(json, "samples", (double)side->model->totals.sum.samples);
    json_key_number(json, "unseen", side->model->totals.sum.total_bytes.unseen);
    json_key(json, "processes");
    json_array(json);
    for (size_t i = 0; i < side->model->process_count; i++)
        page_tree_write_process(json, page->tree.options, &side->model->processes[i]);
    json_array_end(json);
    json_object_end(json);
}

static void write_comparison(struct page *page) {
    const struct page_comparison *comparison = page->comparison;
    struct json *json = &page->tree.json;
    struct diff_judge judge =
        diff_judge_of(page->tree.flame.node_count, &comparison->base.diff, &comparison->fresh.diff);
    json_key(json, "comparison");
    json_object(json);
    write_side(page, "base", &comparison->base);
    write_side(page, "new", &comparison->fresh);
    json_key(json, "judge");
    json_object(json);
    json_key_number(json, "deviation", judge.deviation);
    json_key_number(json, "doubt", judge.doubt);
    json_key_number(json, "rate", judge.rate);
    json_object_end(json);
    json_object_end(json);
}

static void write_head(struct page *page) {
    const struct page_options *options = page->tree.options;
    struct json *json = &page->tree.json;
    enum diff_value value = page->comparison->value;
    char metric[32];
    snprintf(metric, sizeof metric, "%.*s", (int)strcspn(value_names[value], "_"), value_names[value]);
    json_key_integer(json, "version", 1);
    json_key_string(json, "tool", "malloscope " MALLOSCOPE_VERSION);
    json_key_string(json, "metric", metric);
    json_key_string(json, "unit", diff_counts_objects(value) ? "objects" : "bytes");
    json_key_string(json, "filter", options->filter);
    json_key(json, "notes");
    json_array(json);
    page_tree_write_lines(json, options->notes);
    json_array_end(json);
    json_key_number(json, "byte_scale", page->byte_scale);
    json_key_number(json, "object_scale", page->object_scale);
    write_comparison(page);
}

static void write_all(struct page *page, FILE *out) {
    struct page_tree *tree = &page->tree;
    make_diffs(page);
    choose_frames(page);
    json_start(&tree->json, out, false);
    json_object(&tree->json);
    write_head(page);
    write_lines(page);
    page_tree_write(tree);
    write_rows(page);
    page_tree_write_sources(tree, page->comparison->fresh.model);
    json_object_end(&tree->json);
}

int page_diff_write(const struct page_options *options, FILE *out, struct problem *problem) {
    const struct page_comparison *comparison = options->comparison;
    struct page page = {.comparison = comparison, .tree.options = options};
    page.exact = comparison->base.model->exact && comparison->fresh.model->exact;
    page.byte_scale = page.exact ? 1 : BYTE_ONE;
    page.object_scale = page.exact ? 1 : OBJECT_ONE;
    struct view_query query = {
        .by = comparison->by, .filter = options->filter, .raw_sites = options->raw_sites};
    const struct stack_tree_side sides[] = {
        [FRESH] = {comparison->fresh.model, comparison->fresh.resolver},
        [BASE] = {comparison->base.model, comparison->base.resolver},
    };
    int r = flame_compare(sides, &query, options->nodes_max, &page.tree.flame, problem);
    if (r == 0) write_all(&page, out);
    for (int value = 0; value < DIFF_VALUES; value++) diff_free(&page.diffs[value]);
    free(page.lines);
    free(page.line_number);
    page_tree_free(&page.tree);
    return r;
}
