#include "format/page_tree.h"

#include "base/memory.h"
#include "base/path.h"
#include "format/machine_output.h"
#include "format/page_source.h"
#include "format/utf8.h"
#include "view/short_name.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

const char *page_tree_path(const struct page_options *options, const char *path, int parts) {
    if (options->full) return path;
    const char *start = path + strlen(path);
    for (; start > path; start--)
        if (start[-1] == '/' && parts-- == 1) break;
    return start;
}

uint32_t page_tree_text(struct page_tree *tree, const char *text) {
    return intern_table_add_text(&tree->strings, text);
}

uint32_t page_tree_short_name(struct page_tree *tree, const char *function) {
    char *name = utf8_clean_copy(function);
    short_name(name, "…");
    uint32_t number = intern_table_add_text(&tree->strings, name);
    free(name);
    return number;
}

static int64_t number_of_path(struct intern_table *paths, const char *path) {
    return path ? (int64_t)intern_table_add_text(paths, path) : -1;
}

int64_t page_tree_file(struct page_tree *tree, const char *path) {
    return number_of_path(&tree->files, path);
}

int64_t page_tree_module(struct page_tree *tree, const char *path) {
    return number_of_path(&tree->modules, path);
}

static void write_paths(
    struct page_tree *tree, const char *key, const struct intern_table *paths, int parts) {
    json_key(&tree->json, key);
    json_array(&tree->json);
    for (uint32_t i = 0; i < paths->count; i++)
        json_string(&tree->json, page_tree_path(tree->options, paths->entries[i].key, parts));
    json_array_end(&tree->json);
}

static void write_strings(struct page_tree *tree) {
    json_key(&tree->json, "strings");
    json_array(&tree->json);
    for (uint32_t i = 0; i < tree->strings.count; i++) json_string(&tree->json, tree->strings.entries[i].key);
    json_array_end(&tree->json);
}

void page_tree_write_lines(struct json *json, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        char *line = memory_copy_text_part(text, length);
        if (length) json_string(json, line);
        free(line);
        text += length + (text[length] == '\n');
    }
}

void page_tree_write_variance(struct json *json, double variance) {
    char text[JSON_NUMBER_SIZE];
    snprintf(text, sizeof text, "%.6g", variance);
    json_number(json, strtod(text, NULL));
}

void page_tree_write_process(
    struct json *json, const struct page_options *options, const struct model_process *process) {
    json_object(json);
    json_key_string(json, "name", path_last_part(process->executable));
    json_key_string(json, "state", machine_output_state_name(process->state));
    json_key_boolean(json, "attached", process->attached);
    json_key_boolean(json, "snapshot", process->is_snapshot);
    json_key_integer(json, "start_ms", (int64_t)(process->start_realtime / 1000000));
    json_key_number(json, "duration", process->duration);
    json_key_number(json, "peak_seconds", process->peak_seconds);
    if (options->full) {
        json_key_integer(json, "pid", process->pid);
        json_key_string(json, "executable", process->executable);
        json_key_string(json, "command_line", process->command_line);
        json_key_string(json, "recording", process->source);
    }
    json_object_end(json);
}

/* ---- frames ---- */

void page_tree_choose_frames(struct page_tree *tree, const uint32_t *others, size_t other_count) {
    const struct flame *flame = &tree->flame;
    tree->frame_number = memory_allocate_array(flame->frame_count, sizeof *tree->frame_number);
    for (uint32_t i = 0; i < flame->frame_count; i++) tree->frame_number[i] = FLAME_NONE;
    for (uint32_t i = 0; i < flame->node_count; i++)
        if (flame->nodes[i].frame != FLAME_NONE) tree->frame_number[flame->nodes[i].frame] = 0;
    for (size_t i = 0; i < other_count; i++) tree->frame_number[others[i]] = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < flame->frame_count; i++)
        if (tree->frame_number[i] != FLAME_NONE) tree->frame_number[i] = count++;
}

/* Six numbers for each frame: function, short name, file, line, module, and flags: 1 inlined, 2 given by the
 * program and no code, 4 interpreted. */
static void write_frames(struct page_tree *tree) {
    json_key(&tree->json, "frames");
    json_array(&tree->json);
    for (uint32_t i = 0; i < tree->flame.frame_count; i++) {
        if (tree->frame_number[i] == FLAME_NONE) continue;
        const struct listed_frame *frame = &tree->flame.frames[i];
        json_integer(&tree->json, page_tree_text(tree, frame->function));
        json_integer(&tree->json, page_tree_short_name(tree, frame->function));
        json_integer(&tree->json, page_tree_file(tree, frame->file));
        json_integer(&tree->json, frame->line);
        json_integer(&tree->json, page_tree_module(tree, frame->module));
        json_integer(&tree->json, frame->inlined | frame->given << 1 | frame->interpreted << 2);
    }
    json_array_end(&tree->json);
}

/* Three numbers for each node but the root: distance to its caller, frame or -1, calls merged. */
static void write_nodes(struct page_tree *tree) {
    json_key(&tree->json, "nodes");
    json_array(&tree->json);
    for (uint32_t i = 1; i < tree->flame.node_count; i++) {
        const struct flame_node *node = &tree->flame.nodes[i];
        json_integer(&tree->json, i - node->parent);
        json_integer(&tree->json, node->frame == FLAME_NONE ? -1 : (int64_t)tree->frame_number[node->frame]);
        json_integer(&tree->json, node->merged);
    }
    json_array_end(&tree->json);
}

void page_tree_write(struct page_tree *tree) {
    json_key_integer(&tree->json, "merged_calls", tree->flame.merged_count);
    json_key_number(&tree->json, "merged_below", tree->flame.least);
    write_frames(tree);
    write_strings(tree);
    write_paths(tree, "files", &tree->files, 2);
    write_paths(tree, "modules", &tree->modules, 1);
    write_nodes(tree);
}

/* ---- source ---- */

static void write_sources(struct page_tree *tree, const struct model *model) {
    const char **paths = memory_allocate_array(tree->files.count, sizeof *paths);
    struct source_place *places = memory_allocate_array(tree->flame.frame_count, sizeof *places);
    struct source_request request = {.paths = paths,
        .places = places,
        .sysroot = tree->options->sysroot,
        .user = tree->options->source_user};
    if (model->process_count) request.start_realtime = model->processes[0].start_realtime;
    for (uint32_t i = 0; i < tree->files.count; i++) paths[i] = tree->files.entries[i].key;
    for (uint32_t i = 0; i < tree->flame.frame_count; i++) {
        const struct listed_frame *frame = &tree->flame.frames[i];
        if (tree->frame_number[i] == FLAME_NONE || !frame->file || frame->line <= 0) continue;
        places[request.place_count++] =
            (struct source_place){intern_table_add_text(&tree->files, frame->file), frame->line};
    }
    json_key(&tree->json, "sources");
    size_t left_out = page_source_write(&tree->json, &request);
    json_key_integer(&tree->json, "sources_left_out", (int64_t)left_out);
    free(paths);
    free(places);
}

void page_tree_write_sources(struct page_tree *tree, const struct model *model) {
    if (!tree->options->no_source) write_sources(tree, model);
}

void page_tree_free(struct page_tree *tree) {
    flame_free(&tree->flame);
    intern_table_free(&tree->strings);
    intern_table_free(&tree->files);
    intern_table_free(&tree->modules);
    free(tree->frame_number);
}
