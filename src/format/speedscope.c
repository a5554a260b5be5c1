/* The format `speedscope`: one file with a profile for each figure. All profiles share one table of frames.
 *
 * The layout is that of https://www.speedscope.app/file-format-schema.json, with profiles of type "sampled": a
 * sample is a stack, root first, and its weight is the figure. */
#include "base/memory.h"
#include "base/path.h"
#include "format/intern_table.h"
#include "format/json.h"
#include "format/writers.h"
#include "view/source_frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum value_kind value;
    const char *name, *unit;
} profiles[] = {
    {VALUE_LIVE, "live bytes", "bytes"},
    {VALUE_PEAK, "live bytes at peak", "bytes"},
    {VALUE_TOTAL, "allocated bytes", "bytes"},
    {VALUE_OBJECTS, "live objects", "none"},
};

/* A stack, as the numbers of its frames, root first. */
struct path {
    uint32_t *frames;
    size_t count;
};

/* Frames with equal name, file and line are one. The first symbol of each is kept, to be written. */
struct frame_table {
    struct intern_table keys;
    const struct symbol **symbols;
    size_t capacity;
};

static uint32_t frame_number(struct frame_table *table, const struct symbol *symbol) {
    char *key = memory_format_text(
        "%s%c%s%c%d", symbol->function, 1, symbol->file ? symbol->file : "", 1, symbol->line);
    uint32_t before = table->keys.count;
    uint32_t number = intern_table_add_text(&table->keys, key);
    free(key);

    if (table->keys.count > before) {
        if (number == table->capacity) {
            table->capacity = table->capacity ? table->capacity * 2 : 256;
            table->symbols = memory_reallocate_array(table->symbols, table->capacity, sizeof *table->symbols);
        }
        table->symbols[number] = symbol;
    }
    return number;
}

static void make_paths(const struct format_input *input, struct frame_table *table, struct path *paths) {
    struct source_frames frames = {0};
    const struct model *model = input->model;

    for (size_t i = 0; i < model->stack_count; i++) {
        source_frames_expand_labelled(&frames, model, input->resolver, &model->stacks[i]);
        paths[i].frames = memory_allocate_array(frames.count, sizeof *paths[i].frames);
        for (size_t k = 0; k < frames.count; k++)
            paths[i].frames[frames.count - 1 - k] = frame_number(table, frames.frames[k].symbol);
        paths[i].count = frames.count;
    }
    source_frames_free(&frames);
}

static void write_frames(struct json *json, const struct frame_table *table) {
    json_array(json);
    for (uint32_t i = 0; i < table->keys.count; i++) {
        const struct symbol *symbol = table->symbols[i];
        json_object(json);
        json_key_string(json, "name", symbol->function);
        if (symbol->file) json_key_string(json, "file", symbol->file);
        if (symbol->line > 0) json_key_integer(json, "line", symbol->line);
        json_object_end(json);
    }
    json_array_end(json);
}

static void write_profile(
    struct json *json, const struct model *model, const struct path *paths, size_t which) {
    double sum = 0;

    json_object(json);
    json_key_string(json, "type", "sampled");
    json_key_string(json, "name", profiles[which].name);
    json_key_string(json, "unit", profiles[which].unit);
    json_key(json, "samples");
    json_array(json);
    for (size_t i = 0; i < model->stack_count; i++) {
        double weight = round(format_value_of(&model->stacks[i].figures, profiles[which].value));
        if (weight <= 0) continue;
        sum += weight;
        json_array(json);
        for (size_t k = 0; k < paths[i].count; k++) json_integer(json, paths[i].frames[k]);
        json_array_end(json);
    }
    json_array_end(json);
    json_key(json, "weights");
    json_array(json);
    for (size_t i = 0; i < model->stack_count; i++) {
        double weight = round(format_value_of(&model->stacks[i].figures, profiles[which].value));
        if (weight > 0) json_number(json, weight);
    }
    json_array_end(json);
    json_key_integer(json, "startValue", 0);
    json_key_number(json, "endValue", sum);
    json_object_end(json);
}

static void write_file(struct json *json, const struct format_input *input, const struct frame_table *table,
    const struct path *paths) {
    const struct model *model = input->model;
    const size_t profile_count = sizeof profiles / sizeof profiles[0];

    json_object(json);
    json_key_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    /* The schema has no place of its own for it. */
    cleanup_text char *exporter =
        memory_format_text("malloscope " MALLOSCOPE_VERSION " (the recorder took %llu bytes itself)",
            (unsigned long long)model->totals.recorder_bytes);
    json_key_string(json, "exporter", exporter);
    json_key_string(json, "name",
        model->process_count && model->processes[0].executable
            ? path_last_part(model->processes[0].executable)
            : "malloscope");
    for (size_t i = 0; i < profile_count; i++)
        if (profiles[i].value == input->value) json_key_integer(json, "activeProfileIndex", (int64_t)i);
    json_key(json, "shared");
    json_object(json);
    json_key(json, "frames");
    write_frames(json, table);
    json_object_end(json);
    json_key(json, "profiles");
    json_array(json);
    for (size_t i = 0; i < profile_count; i++) write_profile(json, model, paths, i);
    json_array_end(json);
    json_object_end(json);
}

int speedscope_write(const struct format_input *input, FILE *out, struct problem *problem) {
    (void)problem;
    size_t stack_count = input->model->stack_count;
    struct frame_table table = {0};
    struct path *paths = memory_allocate_array(stack_count + 1, sizeof *paths);
    make_paths(input, &table, paths);

    struct json json;
    json_start(&json, out, false);
    write_file(&json, input, &table, paths);

    for (size_t i = 0; i < stack_count; i++) free(paths[i].frames);
    free(paths);
    free(table.symbols);
    intern_table_free(&table.keys);
    return 0;
}
