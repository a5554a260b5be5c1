#include "format/page_data.h"

#include "base/memory.h"
#include "format/intern_table.h"
#include "format/machine_output.h"
#include "format/page_tree.h"
#include "format/utf8.h"
#include "format/writers.h"
#include "model/stack_labels.h"

#include <stdlib.h>
#include <string.h>

#define SITES_MAX     10000
#define BIRTH_BUCKETS 64

struct page {
    const struct model *model;
    struct page_tree tree;
    struct view_rows sites;
    double byte_scale, object_scale;
};

/* The stack by which a site's frame and labels are found: its largest. */
static size_t stack_of_site(const struct page *page, uint32_t site) {
    return (size_t)(page->sites.rows[site].largest - page->model->stacks);
}

static uint32_t site_frame(const struct page *page, uint32_t site) {
    return page->tree.flame.parts[0].stack_site[stack_of_site(page, site)];
}

static void write_estimate(struct page *page, struct estimate bytes, struct estimate objects) {
    json_number(&page->tree.json, bytes.value * page->byte_scale);
    json_number(&page->tree.json, objects.value * page->object_scale);
    if (page->model->exact) return;
    page_tree_write_variance(&page->tree.json, bytes.variance);
    page_tree_write_variance(&page->tree.json, objects.variance);
}

static void write_columns(struct page *page) {
    static const char *const exact[] = {"node", "live_bytes", "live_objects", "peak_bytes", "peak_objects",
        "total_bytes", "total_objects", "temporary_bytes", "temporary_objects", "frees", "samples",
        "live_samples"};
    static const char *const sampled[] = {"node", "live_bytes", "live_objects", "live_bytes_variance",
        "live_objects_variance", "peak_bytes", "peak_objects", "peak_bytes_variance", "peak_objects_variance",
        "total_bytes", "total_objects", "total_bytes_variance", "total_objects_variance", "temporary_bytes",
        "temporary_objects", "frees", "samples", "live_samples"};
    const char *const *names = page->model->exact ? exact : sampled;
    size_t count = page->model->exact ? sizeof exact / sizeof *exact : sizeof sampled / sizeof *sampled;
    json_key(&page->tree.json, "columns");
    json_array(&page->tree.json);
    for (size_t i = 0; i < count; i++) json_string(&page->tree.json, names[i]);
    json_array_end(&page->tree.json);
}

static void write_rows(struct page *page) {
    struct json *json = &page->tree.json;
    write_columns(page);
    json_key(json, "rows");
    json_array(json);
    for (uint32_t i = 0, before = 0; i < page->tree.flame.node_count; i++) {
        if (page->tree.flame.nodes[i].row == FLAME_NONE) continue;
        const struct figures *figures = &page->tree.flame.parts[0].rows[page->tree.flame.nodes[i].row];
        json_integer(json, i - before);
        before = i;
        write_estimate(page, figures->live_bytes, figures->live_objects);
        write_estimate(page, figures->at_peak_bytes, figures->at_peak_objects);
        write_estimate(page, figures->total_bytes, figures->total_objects);
        json_number(json, figures->temporary_bytes * page->byte_scale);
        json_number(json, figures->temporary_objects * page->object_scale);
        json_number(json, figures->freed_objects * page->object_scale);
        json_number(json, (double)figures->samples);
        json_number(json, (double)figures->live_samples);
    }
    json_array_end(json);
}

/* Three numbers for each entry: distance from the row of the entry before, bucket, objects. */
static void write_lifetimes(struct page *page) {
    json_key(&page->tree.json, "lifetimes");
    json_array(&page->tree.json);
    for (uint32_t i = 0, before = 0; i < page->tree.flame.row_count; i++)
        for (int bucket = 0; bucket < LIFETIME_BUCKETS; bucket++) {
            double objects = page->tree.flame.parts[0].rows[i].lifetime[bucket];
            if (!(objects > 0)) continue;
            json_integer(&page->tree.json, i - before);
            before = i;
            json_integer(&page->tree.json, bucket);
            json_number(&page->tree.json, objects * page->object_scale);
        }
    json_array_end(&page->tree.json);
}

/* When live blocks were allocated: the live samples by group, which `group_of_stack` tells, and by bucket of time.
 * Four numbers for each entry: distance from the group of the entry before, bucket, bytes, objects. */
static void write_births(
    struct page *page, const char *key, const uint32_t *group_of_stack, uint32_t group_count, double width) {
    const struct model *model = page->model;
    if (model->live_count >= UINT32_MAX) memory_is_short(); /* numbers have 32 bits */
    uint32_t *starts = memory_allocate_array((size_t)group_count + 2, sizeof *starts);
    uint32_t *order = memory_allocate_array(model->live_count, sizeof *order);
    /* A counting sort by group. In the end, starts[g] to starts[g + 1] are the samples of group g. */
    for (size_t i = 0; i < model->live_count; i++) {
        uint32_t group = group_of_stack[model->live[i].stack];
        if (group != FLAME_NONE) starts[group + 2]++;
    }
    for (uint32_t i = 2; i < group_count + 2; i++) starts[i] += starts[i - 1];
    for (size_t i = 0; i < model->live_count; i++) {
        uint32_t group = group_of_stack[model->live[i].stack];
        if (group != FLAME_NONE) order[starts[group + 1]++] = (uint32_t)i;
    }
    json_key(&page->tree.json, key);
    json_array(&page->tree.json);
    for (uint32_t group = 0, before = 0; group < group_count; group++) {
        double bytes[BIRTH_BUCKETS] = {0}, objects[BIRTH_BUCKETS] = {0};
        for (uint32_t i = starts[group]; i < starts[group + 1]; i++) {
            const struct model_live *live = &model->live[order[i]];
            double place = (double)live->birth / width, more_bytes, more_objects;
            int bucket = place < BIRTH_BUCKETS ? (int)place : BIRTH_BUCKETS - 1;
            model_live_weight(model, live, &more_bytes, &more_objects);
            bytes[bucket] += more_bytes;
            objects[bucket] += more_objects;
        }
        for (int bucket = 0; bucket < BIRTH_BUCKETS && starts[group] < starts[group + 1]; bucket++) {
            if (!(objects[bucket] > 0)) continue;
            json_integer(&page->tree.json, group - before);
            before = group;
            json_integer(&page->tree.json, bucket);
            json_number(&page->tree.json, bytes[bucket] * page->byte_scale);
            json_number(&page->tree.json, objects[bucket] * page->object_scale);
        }
    }
    json_array_end(&page->tree.json);
    free(starts);
    free(order);
}

/* ---- sites ---- */

/* Heap and type of each site, if the programs have named any. */
static void write_labels(struct page *page, uint32_t count) {
    bool has_types = false;
    for (uint32_t i = 0; i < count; i++) has_types |= page->sites.rows[i].type != NULL;
    if (model_has_heaps(page->model)) {
        json_key(&page->tree.json, "heaps");
        json_array(&page->tree.json);
        for (uint32_t i = 0; i < count; i++) json_string(&page->tree.json, page->sites.rows[i].heap);
        json_array_end(&page->tree.json);
    }
    if (has_types) {
        json_key(&page->tree.json, "types");
        json_array(&page->tree.json);
        for (uint32_t i = 0; i < count; i++) json_string(&page->tree.json, page->sites.rows[i].type);
        json_array_end(&page->tree.json);
    }
}

static void write_sites(struct page *page, uint32_t count) {
    struct json *json = &page->tree.json;
    struct figures rest;
    figures_clear(&rest);
    json_key(json, "sites");
    json_object(json);
    json_key(json, "names");
    machine_output_write_figure_names(json);
    json_key(json, "frames");
    json_array(json);
    for (uint32_t i = 0; i < count; i++) json_integer(json, page->tree.frame_number[site_frame(page, i)]);
    json_array_end(json);
    write_labels(page, count);
    json_key(json, "values");
    json_array(json);
    for (uint32_t i = 0; i < count; i++)
        machine_output_write_figure_values(json, &page->sites.rows[i].figures);
    json_array_end(json);
    json_key_integer(json, "left_out", (int64_t)(page->sites.count - count));
    for (size_t i = count; i < page->sites.count; i++) figures_add(&rest, &page->sites.rows[i].figures);
    json_key(json, "rest");
    json_array(json);
    if (count < page->sites.count) machine_output_write_figure_values(json, &rest);
    json_array_end(json);
    json_object_end(json);
}

/* The number of the site of a stack: stacks of one site have frame, heap and type in common. */
static uint32_t number_of_site(
    const struct page *page, struct intern_table *keys, struct intern_table *texts, size_t stack) {
    struct stack_labels labels = stack_labels_of(page->model, &page->model->stacks[stack]);
    const uint32_t key[] = {page->tree.flame.parts[0].stack_site[stack],
        intern_table_add_text(texts, labels.heap),
        labels.type ? intern_table_add_text(texts, labels.type) : FLAME_NONE};
    return intern_table_add(keys, key, sizeof key);
}

/* For each stack its site, if that is one of the first `count`; else FLAME_NONE. The caller frees it. */
static uint32_t *sites_of_stacks(const struct page *page, uint32_t count) {
    const struct model *model = page->model;
    struct intern_table keys = {0}, texts = {0};
    uint32_t *sites = memory_allocate_array(model->stack_count, sizeof *sites);
    for (uint32_t i = 0; i < count; i++) number_of_site(page, &keys, &texts, stack_of_site(page, i));
    for (size_t i = 0; i < model->stack_count; i++) {
        bool kept = page->tree.flame.parts[0].stack_site[i] != FLAME_NONE;
        uint32_t site = kept ? number_of_site(page, &keys, &texts, i) : FLAME_NONE;
        sites[i] = site < count ? site : FLAME_NONE;
    }
    intern_table_free(&keys);
    intern_table_free(&texts);
    return sites;
}

static void write_all_births(struct page *page, uint32_t site_count) {
    if (page->model->process_count != 1) return; /* several processes have no common time */
    double width = page->model->processes[0].duration / BIRTH_BUCKETS;
    if (!(width > 0)) return;
    uint32_t *site_of_stack = sites_of_stacks(page, site_count);
    json_key_number(&page->tree.json, "birth_width", width);
    json_key_integer(&page->tree.json, "birth_buckets", BIRTH_BUCKETS);
    write_births(page, "births", page->tree.flame.parts[0].stack_row, page->tree.flame.row_count, width);
    write_births(page, "site_births", site_of_stack, site_count, width);
    free(site_of_stack);
}

/* ---- the program and the whole page ---- */

/* Warnings about a recording name its file, so that they are shown only if whole paths may be. */
static void write_notes(struct page *page) {
    json_key(&page->tree.json, "notes");
    json_array(&page->tree.json);
    if (page->tree.options->full)
        page_tree_write_lines(&page->tree.json, page->model->warning);
    else if (page->model->damaged)
        json_string(&page->tree.json,
            "the recording is damaged: figures may be missing, 'malloscope info' says which");
    page_tree_write_lines(&page->tree.json, page->tree.options->notes);
    json_array_end(&page->tree.json);
}

static void write_timeline(struct page *page) {
    const struct model *model = page->model;
    struct json *json = &page->tree.json;
    json_key(json, "timeline");
    json_object(json);
    json_key_number(json, "width", model->moment_count ? model->timeline[0].width : 0);
#define COLUMN(name)                                                                                         \
    json_key(json, #name);                                                                                   \
    json_array(json);                                                                                        \
    for (size_t i = 0; i < model->moment_count; i++) json_number(json, (double)model->timeline[i].name);     \
    json_array_end(json)
    COLUMN(live_max);
    COLUMN(live_last);
    COLUMN(allocated);
    COLUMN(events);
#undef COLUMN
    json_object_end(json);
}

static enum view_sort sort_of(const struct format_input *input, const struct page_options *options) {
    if (input->value == VALUE_PEAK) return SORT_PEAK;
    return input->value == VALUE_TOTAL ? SORT_TOTAL : options->sort;
}

static void write_head(struct page *page, const struct format_input *input) {
    static const char *const metrics[] = {[SORT_LIVE] = "live",
        [SORT_PEAK] = "peak",
        [SORT_TOTAL] = "total",
        [SORT_ALLOCS] = "total",
        [SORT_TEMPORARY] = "temporary"};
    const struct model *model = page->model;
    struct json *json = &page->tree.json;
    json_key_integer(json, "version", 1);
    json_key_string(json, "tool", "malloscope " MALLOSCOPE_VERSION);
    json_key_string(json, "metric", metrics[sort_of(input, page->tree.options)]);
    bool objects = input->value == VALUE_OBJECTS || page->tree.options->sort == SORT_ALLOCS;
    json_key_string(json, "unit", objects ? "objects" : "bytes");
    json_key_string(json, "filter", page->tree.options->filter);
    json_key_boolean(json, "levels_only", model->levels_only);
    json_key(json, "processes");
    json_array(json);
    for (size_t i = 0; i < model->process_count; i++)
        page_tree_write_process(json, page->tree.options, &model->processes[i]);
    json_array_end(json);
    json_key(json, "totals");
    machine_output_write_totals(json, model);
    json_key(json, "health");
    machine_output_write_health(json, model);
    json_key_number(json, "unseen", model->totals.sum.total_bytes.unseen);
    write_notes(page);
    write_timeline(page);
    json_key_integer(json, "lifetime_buckets", LIFETIME_BUCKETS);
    json_key_integer(json, "temporary_buckets", TEMPORARY_BUCKETS);
    json_key_number(json, "byte_scale", page->byte_scale);
    json_key_number(json, "object_scale", page->object_scale);
}

static void choose_frames(struct page *page, uint32_t site_count) {
    uint32_t *frames = memory_allocate_array(site_count, sizeof *frames);
    for (uint32_t i = 0; i < site_count; i++) frames[i] = site_frame(page, i);
    page_tree_choose_frames(&page->tree, frames, site_count);
    free(frames);
}

static void write_all(struct page *page, const struct format_input *input, FILE *out) {
    uint32_t site_count = page->sites.count < SITES_MAX ? (uint32_t)page->sites.count : SITES_MAX;
    choose_frames(page, site_count);
    struct json *json = &page->tree.json;
    json_start(json, out, false);
    json_object(json);
    write_head(page, input);
    page_tree_write(&page->tree);
    write_rows(page);
    write_lifetimes(page);
    write_sites(page, site_count);
    write_all_births(page, site_count);
    page_tree_write_sources(&page->tree, page->model);
    json_object_end(json);
}

int page_data_write(const struct format_input *input, const struct page_options *options, FILE *out,
    struct problem *problem) {
    const struct model *model = input->model;
    struct page page = {.model = model,
        .tree.options = options,
        .byte_scale = model->exact ? 1 : BYTE_ONE,
        .object_scale = model->exact ? 1 : OBJECT_ONE};
    struct view_query query = {
        .sort = sort_of(input, options), .filter = options->filter, .raw_sites = options->raw_sites};
    int r = view_rows_query(model, input->resolver, &query, &page.sites, problem);
    if (r == 0) r = flame_make(model, input->resolver, &query, options->nodes_max, &page.tree.flame, problem);
    if (r == 0) write_all(&page, input, out);
    view_rows_free(&page.sites);
    page_tree_free(&page.tree);
    return r;
}
