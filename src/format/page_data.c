#include "format/page_data.h"

#include "format/contract.h"
#include "format/intern.h"
#include "format/page_source.h"
#include "format/text.h"
#include "format/writers.h"
#include "model/labels.h"
#include "view/flame.h"
#include "view/short_name.h"

#include <stdlib.h>
#include <string.h>

#define SITES_MAX     10000
#define BIRTH_BUCKETS 64

struct page {
    const struct model *model;
    const struct page_options *options;
    struct flame flame;
    struct view_rows sites;
    struct intern strings;
    struct intern files, modules; /* by whole path: a page shows only its end, which others may share */
    uint32_t *frame_number; /* of each frame of the flame among those written, FLAME_NONE = not needed */
    double byte_scale, object_scale;
    struct json json;
};

/* Names */

/* A path tells where somebody keeps things: the last folder and the name will do. */
static const char *shown_path(const struct page *page, const char *path, int parts) {
    if (page->options->full) return path;
    const char *start = path + strlen(path);
    for (; start > path; start--)
        if (start[-1] == '/' && parts-- == 1) break;
    return start;
}

static uint32_t number_of_short_name(struct page *page, const char *function) {
    char *name = text_to_utf8(function);
    if (name) short_name(name, "…");
    uint32_t number = intern_text(&page->strings, name ? name : function);
    free(name);
    return number;
}

static void write_paths(struct page *page, const char *key, const struct intern *paths, int parts) {
    json_key(&page->json, key);
    json_array(&page->json);
    for (uint32_t i = 0; i < paths->count; i++)
        json_string(&page->json, shown_path(page, paths->entries[i].key, parts));
    json_array_end(&page->json);
}

/* The stack that stands for a site. */
static size_t stack_of_site(const struct page *page, uint32_t site) {
    return (size_t)(page->sites.rows[site].largest - page->model->stacks);
}

/* Frames that a node or a site names. */
static bool choose_frames(struct page *page, uint32_t site_count) {
    const struct flame *flame = &page->flame;
    page->frame_number = malloc((flame->frame_count + 1) * sizeof *page->frame_number);
    if (!page->frame_number) return false;
    for (uint32_t i = 0; i < flame->frame_count; i++) page->frame_number[i] = FLAME_NONE;
    for (uint32_t i = 0; i < flame->node_count; i++)
        if (flame->nodes[i].frame != FLAME_NONE) page->frame_number[flame->nodes[i].frame] = 0;
    for (uint32_t i = 0; i < site_count; i++)
        page->frame_number[flame->stack_site[stack_of_site(page, i)]] = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < flame->frame_count; i++)
        if (page->frame_number[i] != FLAME_NONE) page->frame_number[i] = count++;
    return true;
}

static int64_t number_of_path(struct intern *paths, const char *path) {
    return path ? (int64_t)intern_text(paths, path) : -1;
}

/* Six numbers a frame: function, short name, file, line, module, and the sum of 1 for inlined, 2 for no code,
 * 4 for interpreted. */
static void write_frames(struct page *page) {
    json_key(&page->json, "frames");
    json_array(&page->json);
    for (uint32_t i = 0; i < page->flame.frame_count; i++) {
        if (page->frame_number[i] == FLAME_NONE) continue;
        const struct flame_frame *frame = &page->flame.frames[i];
        json_integer(&page->json, intern_text(&page->strings, frame->function));
        json_integer(&page->json, number_of_short_name(page, frame->function));
        json_integer(&page->json, number_of_path(&page->files, frame->file));
        json_integer(&page->json, frame->line);
        json_integer(&page->json, number_of_path(&page->modules, frame->module));
        json_integer(&page->json, frame->inlined | frame->given << 1 | frame->interpreted << 2);
    }
    json_array_end(&page->json);
}

static void write_strings(struct page *page) {
    json_key(&page->json, "strings");
    json_array(&page->json);
    for (uint32_t i = 0; i < page->strings.count; i++) json_string(&page->json, page->strings.entries[i].key);
    json_array_end(&page->json);
}

/* The tree */

/* Three numbers a node but the root: how far back its caller is, frame or -1, calls merged. */
static void write_nodes(struct page *page) {
    json_key(&page->json, "nodes");
    json_array(&page->json);
    for (uint32_t i = 1; i < page->flame.node_count; i++) {
        const struct flame_node *node = &page->flame.nodes[i];
        json_integer(&page->json, i - node->parent);
        json_integer(&page->json, node->frame == FLAME_NONE ? -1 : (int64_t)page->frame_number[node->frame]);
        json_integer(&page->json, node->merged);
    }
    json_array_end(&page->json);
}

/* Six digits are more than an estimate of a variance is worth. */
static void write_variance(struct json *json, double variance) {
    char text[JSON_NUMBER_SIZE];
    snprintf(text, sizeof text, "%.6g", variance);
    json_number(json, strtod(text, NULL));
}

static void write_estimate(struct page *page, struct estimate bytes, struct estimate objects) {
    json_number(&page->json, bytes.value * page->byte_scale);
    json_number(&page->json, objects.value * page->object_scale);
    if (page->model->exact) return;
    write_variance(&page->json, bytes.variance);
    write_variance(&page->json, objects.variance);
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
    json_key(&page->json, "columns");
    json_array(&page->json);
    for (size_t i = 0; i < count; i++) json_string(&page->json, names[i]);
    json_array_end(&page->json);
}

static void write_rows(struct page *page) {
    struct json *json = &page->json;
    write_columns(page);
    json_key(json, "rows");
    json_array(json);
    for (uint32_t i = 0, before = 0; i < page->flame.node_count; i++) {
        if (page->flame.nodes[i].row == FLAME_NONE) continue;
        const struct figures *figures = &page->flame.rows[page->flame.nodes[i].row];
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

/* Three numbers an entry: rows since the last one, bucket, objects. */
static void write_lifetimes(struct page *page) {
    json_key(&page->json, "lifetimes");
    json_array(&page->json);
    for (uint32_t i = 0, before = 0; i < page->flame.row_count; i++)
        for (int bucket = 0; bucket < LIFETIME_BUCKETS; bucket++) {
            double objects = page->flame.rows[i].lifetime[bucket];
            if (!(objects > 0)) continue;
            json_integer(&page->json, i - before);
            before = i;
            json_integer(&page->json, bucket);
            json_number(&page->json, objects * page->object_scale);
        }
    json_array_end(&page->json);
}

/* When what is live was allocated. The live samples, put together by what `group_of_stack` says. Four numbers
 * an entry: groups since the last one, bucket, bytes, objects. */
static bool write_births(
    struct page *page, const char *key, const uint32_t *group_of_stack, uint32_t group_count, double width) {
    const struct model *model = page->model;
    uint32_t *starts = calloc((size_t)group_count + 2, sizeof *starts);
    uint32_t *order = malloc((model->live_count + 1) * sizeof *order);
    if (!starts || !order || model->live_count >= UINT32_MAX) {
        free(starts);
        free(order);
        return false;
    }
    /* Sorted by counting: starts[g + 1] becomes where the samples of group g end. */
    for (size_t i = 0; i < model->live_count; i++) {
        uint32_t group = group_of_stack[model->live[i].stack];
        if (group != FLAME_NONE) starts[group + 2]++;
    }
    for (uint32_t i = 2; i < group_count + 2; i++) starts[i] += starts[i - 1];
    for (size_t i = 0; i < model->live_count; i++) {
        uint32_t group = group_of_stack[model->live[i].stack];
        if (group != FLAME_NONE) order[starts[group + 1]++] = (uint32_t)i;
    }
    json_key(&page->json, key);
    json_array(&page->json);
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
            json_integer(&page->json, group - before);
            before = group;
            json_integer(&page->json, bucket);
            json_number(&page->json, bytes[bucket] * page->byte_scale);
            json_number(&page->json, objects[bucket] * page->object_scale);
        }
    }
    json_array_end(&page->json);
    free(starts);
    free(order);
    return true;
}

/* Sites */

/* Heap and type of each site, where programs told of some. */
static void write_labels(struct page *page, uint32_t count) {
    bool has_types = false;
    for (uint32_t i = 0; i < count; i++) has_types |= page->sites.rows[i].type != NULL;
    if (model_has_heaps(page->model)) {
        json_key(&page->json, "heaps");
        json_array(&page->json);
        for (uint32_t i = 0; i < count; i++) json_string(&page->json, page->sites.rows[i].heap);
        json_array_end(&page->json);
    }
    if (has_types) {
        json_key(&page->json, "types");
        json_array(&page->json);
        for (uint32_t i = 0; i < count; i++) json_string(&page->json, page->sites.rows[i].type);
        json_array_end(&page->json);
    }
}

static void write_sites(struct page *page, uint32_t count) {
    struct json *json = &page->json;
    struct figures rest;
    figures_clear(&rest);
    json_key(json, "sites");
    json_object(json);
    json_key(json, "names");
    contract_write_figure_names(json);
    json_key(json, "frames");
    json_array(json);
    for (uint32_t i = 0; i < count; i++)
        json_integer(json, page->frame_number[page->flame.stack_site[stack_of_site(page, i)]]);
    json_array_end(json);
    write_labels(page, count);
    json_key(json, "values");
    json_array(json);
    for (uint32_t i = 0; i < count; i++) contract_write_figure_values(json, &page->sites.rows[i].figures);
    json_array_end(json);
    json_key_integer(json, "left_out", (int64_t)(page->sites.count - count));
    for (size_t i = count; i < page->sites.count; i++) figures_add(&rest, &page->sites.rows[i].figures);
    json_key(json, "rest");
    json_array(json);
    if (count < page->sites.count) contract_write_figure_values(json, &rest);
    json_array_end(json);
    json_object_end(json);
}

/* What the stacks of a site have in common. */
static uint32_t number_of_site(
    const struct page *page, struct intern *keys, struct intern *texts, size_t stack) {
    struct stack_labels labels = model_labels(page->model, &page->model->stacks[stack]);
    const uint32_t key[] = {page->flame.stack_site[stack], intern_text(texts, labels.heap),
        labels.type ? intern_text(texts, labels.type) : FLAME_NONE};
    return intern_add(keys, key, sizeof key);
}

/* Which site each stack belongs to, of the first `count`. NULL: out of memory. */
static uint32_t *sites_of_stacks(const struct page *page, uint32_t count) {
    const struct model *model = page->model;
    struct intern keys = {0}, texts = {0};
    uint32_t *sites = malloc((model->stack_count + 1) * sizeof *sites);
    for (uint32_t i = 0; i < count; i++) number_of_site(page, &keys, &texts, stack_of_site(page, i));
    for (size_t i = 0; sites && i < model->stack_count; i++) {
        bool kept = page->flame.stack_site[i] != FLAME_NONE;
        uint32_t site = kept ? number_of_site(page, &keys, &texts, i) : FLAME_NONE;
        sites[i] = site < count ? site : FLAME_NONE;
    }
    if (keys.failed || texts.failed) {
        free(sites);
        sites = NULL;
    }
    intern_free(&keys);
    intern_free(&texts);
    return sites;
}

static bool write_all_births(struct page *page, uint32_t site_count) {
    if (page->model->process_count != 1) return true; /* they have no common time */
    double width = page->model->processes[0].duration / BIRTH_BUCKETS;
    if (!(width > 0)) return true;
    uint32_t *site_of_stack = sites_of_stacks(page, site_count);
    if (!site_of_stack) return false;
    json_key_number(&page->json, "birth_width", width);
    json_key_integer(&page->json, "birth_buckets", BIRTH_BUCKETS);
    bool fine = write_births(page, "births", page->flame.stack_row, page->flame.row_count, width) &&
                write_births(page, "site_births", site_of_stack, site_count, width);
    free(site_of_stack);
    return fine;
}

/* The program and the whole */

static void write_flag(struct json *json, const char *key, bool value) {
    json_key(json, key);
    json_boolean(json, value);
}

static void write_process(struct page *page, const struct model_process *process) {
    struct json *json = &page->json;
    json_object(json);
    json_key_string(json, "name", text_base_name(process->executable));
    json_key_string(json, "state", contract_state_name(process->state));
    write_flag(json, "attached", process->attached);
    write_flag(json, "snapshot", process->is_snapshot);
    json_key_integer(json, "start_ms", (int64_t)(process->start_realtime / 1000000));
    json_key_number(json, "duration", process->duration);
    json_key_number(json, "peak_seconds", process->peak_seconds);
    if (page->options->full) {
        json_key_integer(json, "pid", process->pid);
        json_key_string(json, "executable", process->executable);
        json_key_string(json, "command_line", process->command_line);
        json_key_string(json, "recording", process->source);
    }
    json_object_end(json);
}

static void write_lines(struct json *json, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        if (length) json_string(json, line);
        free(line);
        text += length + (text[length] == '\n');
    }
}

/* Warnings about a recording name its file. */
static void write_notes(struct page *page) {
    json_key(&page->json, "notes");
    json_array(&page->json);
    if (page->options->full)
        write_lines(&page->json, page->model->warning);
    else if (page->model->damaged)
        json_string(
            &page->json, "the recording is damaged: figures may be missing, 'malloscope info' says which");
    write_lines(&page->json, page->options->notes);
    json_array_end(&page->json);
}

static void write_timeline(struct page *page) {
    const struct model *model = page->model;
    struct json *json = &page->json;
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
    struct json *json = &page->json;
    json_key_integer(json, "version", 1);
    json_key_string(json, "tool", "malloscope " MALLOSCOPE_VERSION);
    json_key_string(json, "metric", metrics[sort_of(input, page->options)]);
    bool objects = input->value == VALUE_OBJECTS || page->options->sort == SORT_ALLOCS;
    json_key_string(json, "unit", objects ? "objects" : "bytes");
    json_key_string(json, "filter", page->options->filter);
    write_flag(json, "levels_only", model->levels_only);
    json_key(json, "processes");
    json_array(json);
    for (size_t i = 0; i < model->process_count; i++) write_process(page, &model->processes[i]);
    json_array_end(json);
    json_key(json, "totals");
    contract_write_totals(json, model);
    json_key(json, "health");
    contract_write_health(json, model);
    json_key_number(json, "unseen", model->totals.sum.total_bytes.unseen);
    write_notes(page);
    write_timeline(page);
    json_key_integer(json, "lifetime_buckets", LIFETIME_BUCKETS);
    json_key_integer(json, "temporary_buckets", TEMPORARY_BUCKETS);
    json_key_number(json, "byte_scale", page->byte_scale);
    json_key_number(json, "object_scale", page->object_scale);
    json_key_integer(json, "merged_calls", page->flame.merged_count);
    json_key_number(json, "merged_below", page->flame.least);
}

static bool write_sources(struct page *page) {
    const char **paths = malloc((page->files.count + 1) * sizeof *paths);
    struct source_place *places = malloc((page->flame.frame_count + 1) * sizeof *places);
    bool fine = paths && places;
    struct source_request request = {.paths = paths, .places = places, .sysroot = page->options->sysroot};
    if (page->model->process_count) request.start_realtime = page->model->processes[0].start_realtime;
    for (uint32_t i = 0; fine && i < page->files.count; i++) paths[i] = page->files.entries[i].key;
    for (uint32_t i = 0; fine && i < page->flame.frame_count; i++) {
        const struct flame_frame *frame = &page->flame.frames[i];
        if (page->frame_number[i] == FLAME_NONE || !frame->file || frame->line <= 0) continue;
        places[request.place_count++] =
            (struct source_place){intern_text(&page->files, frame->file), frame->line};
    }
    if (fine) {
        json_key(&page->json, "sources");
        size_t left_out = page_source_write(&page->json, &request);
        json_key_integer(&page->json, "sources_left_out", (int64_t)left_out);
    }
    free(paths);
    free(places);
    return fine;
}

static bool write_all(struct page *page, const struct format_input *input, FILE *out) {
    uint32_t site_count = page->sites.count < SITES_MAX ? (uint32_t)page->sites.count : SITES_MAX;
    if (!choose_frames(page, site_count)) return false;
    json_start(&page->json, out, false);
    json_object(&page->json);
    write_head(page, input);
    write_frames(page);
    write_strings(page);
    write_paths(page, "files", &page->files, 2);
    write_paths(page, "modules", &page->modules, 1);
    write_nodes(page);
    write_rows(page);
    write_lifetimes(page);
    write_sites(page, site_count);
    bool fine = write_all_births(page, site_count) && (page->options->no_source || write_sources(page));
    json_object_end(&page->json);
    return fine && !page->strings.failed && !page->files.failed && !page->modules.failed;
}

int page_data_write(const struct format_input *input, const struct page_options *options, FILE *out,
    struct problem *problem) {
    const struct model *model = input->model;
    struct page page = {.model = model,
        .options = options,
        .byte_scale = model->exact ? 1 : BYTE_ONE,
        .object_scale = model->exact ? 1 : OBJECT_ONE};
    struct view_query query = {
        .sort = sort_of(input, options), .filter = options->filter, .raw_sites = options->raw_sites};
    int r = view_rows_query(model, input->resolver, &query, &page.sites, problem);
    if (r == 0) r = flame_make(model, input->resolver, &query, options->nodes_max, &page.flame, problem);
    if (r == 0 && !write_all(&page, input, out)) r = out_of_memory(problem);
    view_rows_free(&page.sites);
    flame_free(&page.flame);
    intern_free(&page.strings);
    intern_free(&page.files);
    intern_free(&page.modules);
    free(page.frame_number);
    return r;
}
