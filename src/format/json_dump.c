/* The format `json`: the model as one JSON object. Totals and health are as in machine_output.h; what they were
 * made from follows.
 *
 * `frames` holds each frame once. `stacks[].frames` are indices into it, leaf first. Addresses are strings
 * ("0x7f…"), since they do not fit the numbers of most JSON readers. Frames of Python have the `kind` "python".
 * Frames that are a scope or a thread and no code have that as `kind`, and the name that the program gave as
 * `name`. `samples`, if asked for, are the live blocks; their `stack` is an index into `stacks`. */
#include "base/memory.h"
#include "format/intern_table.h"
#include "format/json.h"
#include "format/machine_output.h"
#include "format/writers.h"
#include "model/stack_labels.h"
#include "view/source_frames.h"

#include <inttypes.h>
#include <stdlib.h>

static void write_address(struct json *json, const char *key, uint64_t address) {
    char text[32];
    snprintf(text, sizeof text, "0x%" PRIx64, address);
    json_key_string(json, key, text);
}

static void write_process(struct json *json, const struct model_process *process, bool full) {
    json_object(json);
    json_key_integer(json, "pid", process->pid);
    json_key_integer(json, "parent_pid", process->parent_pid);
    json_key_string(json, "state", machine_output_state_name(process->state));
    json_key_string(json, "executable", process->executable);
    json_key_string(json, "command_line", full ? process->command_line : NULL);
    json_key_string(json, "allocator", process->allocator);
    json_key_string(json, "source", process->source);
    json_key_integer(json, "rate", (int64_t)process->rate);
    json_key_boolean(json, "exact", process->flags & RECORDING_EXACT);
    json_key_boolean(json, "forked", process->flags & RECORDING_FORKED);
    json_key_boolean(json, "no_growth", process->flags & RECORDING_NO_GROWTH);
    json_key_integer(json, "start_realtime_ns", (int64_t)process->start_realtime);
    json_key_number(json, "duration", process->duration);
    json_key_number(json, "peak_seconds", process->peak_seconds);
    json_key_integer(json, "file_bytes", (int64_t)process->file_bytes);
    json_key_integer(json, "recorder_bytes", (int64_t)process->recorder_bytes);
    json_object_end(json);
}

static void write_module(struct json *json, const struct model_module *module) {
    char build_id[2 * sizeof module->build_id + 1];

    build_id[0] = '\0';
    for (int i = 0; i < module->build_id_size; i++) sprintf(build_id + 2 * i, "%02x", module->build_id[i]);

    json_object(json);
    json_key_integer(json, "process", module->process);
    json_key_string(json, "path", module->path);
    write_address(json, "start", module->start);
    write_address(json, "end", module->end);
    write_address(json, "file_offset", module->file_offset);
    json_key_string(json, "build_id", module->build_id_size ? build_id : NULL);
    json_key_boolean(json, "deleted", module->deleted);
    json_object_end(json);
}

static void write_thread(struct json *json, const struct model_thread *thread) {
    json_object(json);
    json_key_integer(json, "process", thread->process);
    json_key_integer(json, "tid", thread->tid);
    json_key_string(json, "name", thread->name);
    json_key_boolean(json, "running", thread->running);
    json_key_integer(json, "start_ns", (int64_t)thread->start_time);
    json_key_integer(json, "end_ns", (int64_t)thread->end_time);
    json_key_number(json, "exact_bytes", thread->exact_bytes);
    json_key_boolean(json, "exact_is_complete", thread->exact_is_complete);
    json_key_integer(json, "samples", (int64_t)thread->samples);
    json_object_end(json);
}

static void write_moment(struct json *json, const struct model_moment *moment) {
    json_object(json);
    json_key_number(json, "seconds", moment->seconds);
    json_key_number(json, "width", moment->width);
    json_key_number(json, "live_max", moment->live_max);
    json_key_number(json, "live_last", moment->live_last);
    json_key_number(json, "allocated", moment->allocated);
    json_key_integer(json, "events", (int64_t)moment->events);
    json_object_end(json);
}

static void write_frame(struct json *json, const struct symbol *symbol, const struct model_module *module,
    uint64_t kind, uint64_t address) {
    json_object(json);
    json_key_string(json, "function", symbol->function);
    json_key_string(json, "linkage", symbol->linkage);
    json_key_string(json, "file", symbol->file);
    json_key_integer(json, "line", symbol->line);
    json_key_string(json, "module", module ? module->path : NULL);
    if (address) {
        write_address(json, "address", address);
    } else {
        json_key_string(json, "address", NULL);
    }
    json_key_boolean(json, "inlined", symbol->inlined);
    if (symbol->interpreted) json_key_string(json, "kind", "python");
    if (symbol->given) {
        json_key_string(json, "kind", kind == FRAME_SCOPE ? "scope" : "thread");
        json_key_string(json, "name", symbol->given);
    }
    json_object_end(json);
}

/* The frames of a location in `frames`. A location is a frame word of a process. It has several frames if calls
 * were inlined there. */
struct frame_range {
    uint32_t first, count;
};

struct frame_table {
    struct intern_table locations;
    struct frame_range *ranges; /* by the number of the location */
    uint32_t capacity;
    uint32_t frame_count;
};

static uint32_t location_number(struct frame_table *table, uint32_t process, uint64_t word) {
    const uint64_t key[] = {word, process};
    return intern_table_add(&table->locations, key, sizeof key);
}

static struct frame_range *new_range(struct frame_table *table, uint32_t location) {
    if (location >= table->capacity) {
        table->capacity = table->capacity ? table->capacity * 2 : 256;
        table->ranges = memory_reallocate_array(table->ranges, table->capacity, sizeof *table->ranges);
    }
    return &table->ranges[location];
}

/* Writes the frames of each location of the model once. Frame 0 is that of stacks without frames. */
static void write_frames(struct json *json, const struct format_input *input, struct frame_table *table) {
    const struct model *model = input->model;

    write_frame(json, &source_frames_dropped, NULL, FRAME_CUT, 0);
    table->frame_count = 1;
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        for (uint32_t k = 0; k < stack->frame_count; k++) {
            uint32_t before = table->locations.count;
            uint32_t location = location_number(table, stack->process, stack->frames[k]);
            if (table->locations.count == before) continue;

            struct frame_range *range = new_range(table, location);
            struct symbol_list symbols = resolver_look_up(input->resolver, stack, k);
            *range = (struct frame_range){table->frame_count, (uint32_t)symbols.count};
            table->frame_count += range->count;
            uint64_t address = model_find_place(model, stack->process, stack->frames[k]).address;
            for (size_t n = 0; n < symbols.count; n++)
                write_frame(
                    json, &symbols.frames[n], symbols.module, stack->frames[k] >> FRAME_KIND_SHIFT, address);
        }
    }
}

static void write_stack(struct json *json, const struct model *model, const struct model_stack *stack,
    struct frame_table *table) {
    struct stack_labels labels = stack_labels_of(model, stack);
    json_object(json);
    json_key_integer(json, "process", stack->process);
    json_key_boolean(json, "complete", stack->flags & STACK_COMPLETE);
    json_key_boolean(json, "cut", stack->flags & STACK_CUT);
    json_key_boolean(json, "folded", stack->flags & STACK_FOLDED);
    json_key_string(json, "heap", labels.heap);
    json_key_string(json, "type", labels.type);
    json_key_string(json, "scope", labels.scope);
    machine_output_write_figures(json, &stack->figures);
    json_key(json, "frames");
    json_array(json);
    if (stack->frame_count == 0) json_integer(json, 0);
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        struct frame_range range = table->ranges[location_number(table, stack->process, stack->frames[i])];
        for (uint32_t k = 0; k < range.count; k++) json_integer(json, range.first + k);
    }
    json_array_end(json);
    json_object_end(json);
}

static void write_sample(struct json *json, const struct model_sample *sample) {
    json_object(json);
    write_address(json, "address", sample->address);
    json_key_integer(json, "size", (int64_t)sample->size);
    json_key_number(json, "weight", sample->weight);
    json_key_integer(json, "birth_ns", (int64_t)sample->birth);
    json_key_integer(json, "stack", sample->stack);
    json_object_end(json);
}

#define WRITE_LIST(json, key, list, count, write)                                                            \
    do {                                                                                                     \
        json_key(json, key);                                                                                 \
        json_array(json);                                                                                    \
        for (size_t i = 0; i < (count); i++) write(json, &(list)[i]);                                        \
        json_array_end(json);                                                                                \
    } while (0)

int json_dump_write(const struct format_input *input, FILE *out, struct problem *problem) {
    (void)problem;
    const struct model *model = input->model;
    struct frame_table table = {0};
    struct json json;

    json_start(&json, out, false);
    json_object(&json);
    json_key_string(&json, "format", "malloscope");
    json_key_integer(&json, "version", 1);
    json_key_string(&json, "exporter", "malloscope " MALLOSCOPE_VERSION);
    json_key(&json, "totals");
    machine_output_write_totals(&json, model);
    json_key(&json, "health");
    machine_output_write_health(&json, model);
    json_key(&json, "heaps");
    machine_output_write_heaps(&json, model);
    json_key(&json, "processes");
    json_array(&json);
    for (size_t i = 0; i < model->process_count; i++) write_process(&json, &model->processes[i], input->full);
    json_array_end(&json);
    WRITE_LIST(&json, "modules", model->modules, model->module_count, write_module);
    WRITE_LIST(&json, "threads", model->threads, model->thread_count, write_thread);
    WRITE_LIST(&json, "timeline", model->timeline, model->moment_count, write_moment);

    json_key(&json, "frames");
    json_array(&json);
    write_frames(&json, input, &table);
    json_array_end(&json);
    json_key(&json, "stacks");
    json_array(&json);
    for (size_t i = 0; i < model->stack_count; i++) write_stack(&json, model, &model->stacks[i], &table);
    json_array_end(&json);
    if (model->samples) WRITE_LIST(&json, "samples", model->samples, model->sample_count, write_sample);
    json_object_end(&json);

    intern_table_free(&table.locations);
    free(table.ranges);
    return 0;
}
