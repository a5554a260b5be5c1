/* Chrome's memory-infra traces, for chrome://tracing and viewers derived from it: one trace with the heap at
 * several moments, and its size in between.
 *
 * Each recording is an input. It gives a memory dump of each of its processes at the end of the recording, and one
 * at the heap's peak, if the peak was earlier and larger. Several recordings of one process, made one after the
 * other, become dumps of one process in the trace. All dumps of one input have one id, by which the viewer puts
 * them side by side. The dump of a peak has an id of its own, since processes have their peaks at different times.
 *
 * `chrome` and `chrome-v1` differ in the form of heap dumps (chrome_heaps.h). Times are microseconds since the
 * first process began. */
#include "base/memory.h"
#include "base/path.h"
#include "format/chrome_heaps.h"
#include "format/chrome_memory.h"
#include "format/writers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CATEGORY "disabled-by-default-memory-infra"

static const char unknown_type[] = "[unknown]"; /* the name that Chrome gives it */

/* For each stack of an input, its path (a node of the frame tree) and its type. */
struct paths {
    uint32_t *nodes, *types;
};

/* A process of the trace. */
struct track {
    int64_t pid; /* in the trace; if two processes had one pid, the second gets another here */
    const struct model_process *process;
    const struct format_input *longest; /* the input that covers most of its run */
    struct number_set nodes, types;     /* that its dumps name */
};

/* A dump that will be written: a process of an input, at its end or at its peak. */
struct moment {
    const struct format_input *input;
    const struct paths *paths;
    uint32_t process;
    size_t track;
    bool at_peak;
    int64_t time;
    uint32_t id;
};

struct trace {
    struct json json;
    bool legacy;
    uint64_t threshold;
    uint64_t start; /* ns since the epoch */
    struct frame_tree tree;
    struct paths *paths; /* by input */
    struct track *tracks;
    struct moment *moments;
    size_t input_count, track_count, moment_count;
    uint32_t next_id;
    uint64_t next_guid;
};

static int64_t time_of(const struct trace *trace, const struct model_process *process, double seconds) {
    return (int64_t)((process->start_realtime - trace->start) / 1000) + llround(seconds * 1e6);
}

static bool is_same_process(const struct model_process *a, const struct model_process *b) {
    return a->pid == b->pid && a->start_realtime == b->start_realtime;
}

static int64_t free_pid(const struct trace *trace, int64_t wanted) {
    int64_t above = 0;
    bool taken = false;
    for (size_t i = 0; i < trace->track_count; i++) {
        if (trace->tracks[i].pid == wanted) taken = true;
        if (trace->tracks[i].pid >= above) above = trace->tracks[i].pid + 1;
    }
    return taken ? above : wanted;
}

static size_t track_of(struct trace *trace, const struct format_input *input, uint32_t number) {
    const struct model_process *process = &input->model->processes[number];
    for (size_t i = 0; i < trace->track_count; i++) {
        struct track *track = &trace->tracks[i];
        if (!is_same_process(track->process, process)) continue;
        if (process->duration > track->process->duration) {
            track->process = process;
            track->longest = input;
        }
        return i;
    }
    trace->tracks[trace->track_count] =
        (struct track){.pid = free_pid(trace, process->pid), .process = process, .longest = input};
    return trace->track_count++;
}

static void add_moment(struct trace *trace, struct moment moment) {
    for (size_t i = 0; i < trace->moment_count; i++) {
        const struct moment *other = &trace->moments[i];
        if (other->track == moment.track && other->at_peak == moment.at_peak && other->time == moment.time)
            return; /* several recordings of a process tell of the same peak */
    }
    trace->moments[trace->moment_count++] = moment;
}

static bool was_larger_at_peak(const struct model *model, uint32_t process) {
    double peak = 0, live = 0;
    for (size_t i = 0; i < model->stack_count; i++) {
        if (model->stacks[i].process != process) continue;
        peak += model->stacks[i].figures.at_peak_bytes.value;
        live += model->stacks[i].figures.live_bytes.value;
    }
    return peak > live;
}

static void add_moments(struct trace *trace, const struct format_input *input, const struct paths *paths) {
    const struct model *model = input->model;
    uint32_t id = trace->next_id++;

    for (uint32_t i = 0; i < model->process_count; i++) {
        const struct model_process *process = &model->processes[i];
        struct moment moment = {.input = input,
            .paths = paths,
            .process = i,
            .track = track_of(trace, input, i),
            .time = time_of(trace, process, process->duration),
            .id = id};
        if (model->levels_only) continue; /* only the size over time is known */
        add_moment(trace, moment);
        moment.at_peak = true;
        int64_t peak = time_of(trace, process, process->peak_seconds);
        if (peak >= moment.time || !was_larger_at_peak(model, i)) continue;
        moment.time = peak;
        moment.id = trace->next_id++;
        add_moment(trace, moment);
    }
}

static int compare_moments(const void *left, const void *right) {
    const struct moment *a = left, *b = right;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : (a->track > b->track) - (a->track < b->track);
}

static void make_paths(struct trace *trace, const struct format_input *input, struct paths *paths) {
    const struct model *model = input->model;
    struct source_frames frames = {0};

    paths->nodes = memory_allocate((model->stack_count + 1) * sizeof *paths->nodes);
    paths->types = memory_allocate((model->stack_count + 1) * sizeof *paths->types);
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        source_frames_expand(&frames, input->resolver, stack);
        paths->nodes[i] = frame_tree_add_stack(&trace->tree, &frames);
        paths->types[i] = frame_tree_type(&trace->tree, stack->type ? stack->type : unknown_type);
    }
    source_frames_free(&frames);
}

/* Lists the processes and moments of all inputs, and makes the paths of their stacks. */
static void prepare(struct trace *trace, const struct format_input *inputs) {
    size_t process_count = 0, number = 0;

    trace->start = UINT64_MAX;
    for (const struct format_input *input = inputs; input; input = input->next) {
        trace->input_count++;
        process_count += input->model->process_count;
        for (size_t i = 0; i < input->model->process_count; i++)
            if (input->model->processes[i].start_realtime < trace->start)
                trace->start = input->model->processes[i].start_realtime;
    }
    trace->paths = memory_allocate(trace->input_count * sizeof *trace->paths);
    trace->tracks = memory_allocate((process_count + 1) * sizeof *trace->tracks);
    trace->moments = memory_allocate((2 * process_count + 1) * sizeof *trace->moments);
    for (const struct format_input *input = inputs; input; input = input->next, number++) {
        make_paths(trace, input, &trace->paths[number]);
        add_moments(trace, input, &trace->paths[number]);
    }
    qsort(trace->moments, trace->moment_count, sizeof *trace->moments, compare_moments);
}

/* Begins an event, up to and including the opening of its `args`. close_event ends it. */
static void open_event(struct trace *trace, const char *phase, const char *category, const char *name,
    int64_t pid, int64_t time, uint32_t id) {
    struct json *json = &trace->json;
    char text[16];

    json_object(json);
    json_key_string(json, "ph", phase);
    json_key_string(
        json, "cat", category); /* viewers that read a trace as a stream identify an event by ph and cat */
    json_key_string(json, "name", name);
    json_key_integer(json, "pid", pid);
    json_key_integer(json, "tid", pid);
    json_key_integer(json, "ts", time);
    if (id) {
        snprintf(text, sizeof text, "0x%" PRIx32, id);
        json_key_string(json, "id", text);
    }
    json_key(json, "args");
    json_object(json);
}

static void close_event(struct trace *trace) {
    json_object_end(&trace->json);
    json_object_end(&trace->json);
}

static void write_process_name(struct trace *trace, const struct track *track) {
    const struct model_process *process = track->process;
    const char *executable = process->executable ? path_last_part(process->executable) : "process";

    open_event(trace, "M", "__metadata", "process_name", track->pid, 0, 0);
    json_key_string(&trace->json, "name", executable);
    close_event(trace);
    if (!process->command_line || !track->longest->full) return;
    open_event(trace, "M", "__metadata", "process_labels", track->pid, 0, 0);
    json_key_string(&trace->json, "labels", process->command_line);
    close_event(trace);
}

static void write_size_over_time(struct trace *trace, const struct track *track) {
    const struct model *model = track->longest->model;

    for (size_t i = 0; i < model->moment_count; i++) {
        const struct model_moment *moment = &model->timeline[i];
        double begin = moment->seconds - moment->width / 2;
        open_event(trace, "C", "malloscope", "heap", track->pid,
            time_of(trace, track->process, begin > 0 ? begin : 0), 0);
        json_key_number(&trace->json, "live bytes", round(moment->live_max));
        close_event(trace);
    }
    if (model->moment_count == 0) return;
    open_event(trace, "C", "malloscope", "heap", track->pid,
        time_of(trace, track->process, track->process->duration), 0);
    json_key_number(&trace->json, "live bytes", round(model->timeline[model->moment_count - 1].live_last));
    close_event(trace);
}

static struct heap_amount amount_of(const struct figures *figures, bool at_peak) {
    const struct estimate *bytes = at_peak ? &figures->at_peak_bytes : &figures->live_bytes;
    const struct estimate *objects = at_peak ? &figures->at_peak_objects : &figures->live_objects;
    return (struct heap_amount){
        .bytes = bytes->value > 0 ? (uint64_t)llround(bytes->value) : 0,
        .objects = objects->value > 0 ? (uint64_t)llround(objects->value) : 0,
    };
}

/* The dumps of all heaps of a process, malloc's first. Heaps with one name are added up. */
static struct chrome_heap *make_heaps(struct trace *trace, const struct moment *moment, size_t *ret_count) {
    const struct model *model = moment->input->model;
    struct intern_table names = {0};

    for (size_t i = 0; i < model->heap_count; i++)
        if (model->heaps[i].process == moment->process) intern_table_add_text(&names, model->heaps[i].name);
    struct chrome_heap *heaps = memory_allocate((names.count + 1) * sizeof *heaps);
    for (uint32_t i = 0; i < names.count; i++) {
        heaps[i].name = chrome_memory_allocator_name(names.entries[i].key);
        heap_dump_add(
            &heaps[i].dump, &trace->tree, FRAME_TREE_ROOT, FRAME_TREE_ANY_TYPE, (struct heap_amount){0});
    }
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (stack->process != moment->process) continue;
        uint32_t heap = intern_table_add_text(&names, model->heaps[stack->heap].name);
        heap_dump_add(&heaps[heap].dump, &trace->tree, moment->paths->nodes[i], moment->paths->types[i],
            amount_of(&stack->figures, moment->at_peak));
    }
    *ret_count = names.count;
    intern_table_free(&names);
    return heaps;
}

static void write_dump(struct trace *trace, const struct moment *moment) {
    struct json *json = &trace->json;
    struct track *track = &trace->tracks[moment->track];
    size_t count;
    struct chrome_heap *heaps = make_heaps(trace, moment, &count);

    open_event(trace, "v", CATEGORY, moment->at_peak ? "peak_memory_usage" : "periodic_interval", track->pid,
        moment->time, moment->id);
    json_key(json, "dumps");
    json_object(json);
    json_key_string(json, "level_of_detail", "detailed");
    chrome_memory_write(json, moment->input->model, moment->process, heaps, count, &trace->next_guid);
    json_key(json, trace->legacy ? "heaps" : "heaps_v2");
    if (trace->legacy)
        chrome_heaps_write_v1(
            json, heaps, count, &trace->tree, trace->threshold, &track->nodes, &track->types);
    else
        chrome_heaps_write_v2(json, heaps, count, &trace->tree, trace->threshold);
    json_object_end(json);
    close_event(trace);
    for (size_t i = 0; i < count; i++) {
        free(heaps[i].name);
        heap_dump_free(&heaps[i].dump);
    }
    free(heaps);
}

/* Defines the paths and types of a process. The viewer drops the dumps of a process without typeNames, even if they
 * name no types. */
static void write_definitions(struct trace *trace, const struct track *track) {
    open_event(trace, "M", "__metadata", "stackFrames", track->pid, 0, 0);
    json_key(&trace->json, "stackFrames");
    chrome_heaps_write_stack_frames(&trace->json, &trace->tree, &track->nodes);
    close_event(trace);
    open_event(trace, "M", "__metadata", "typeNames", track->pid, 0, 0);
    json_key(&trace->json, "typeNames");
    chrome_heaps_write_type_names(&trace->json, &trace->tree, &track->types);
    close_event(trace);
}

static void write_trace(struct trace *trace) {
    struct json *json = &trace->json;

    json_object(json);
    json_key(json, "traceEvents");
    json_array(json);
    for (size_t i = 0; i < trace->track_count; i++) {
        write_process_name(trace, &trace->tracks[i]);
        write_size_over_time(trace, &trace->tracks[i]);
    }
    for (size_t i = 0; i < trace->moment_count; i++) write_dump(trace, &trace->moments[i]);
    for (size_t i = 0; i < trace->track_count && trace->legacy; i++)
        write_definitions(trace, &trace->tracks[i]);
    json_array_end(json);
    json_key_string(json, "displayTimeUnit", "ms");
    json_key(json, "otherData");
    json_object(json);
    json_key_string(json, "exporter", "malloscope " MALLOSCOPE_VERSION);
    json_key_integer(json, "threshold_bytes", (int64_t)trace->threshold);
    if (trace->track_count) json_key_integer(json, "start_realtime_ns", (int64_t)trace->start);
    json_object_end(json);
    json_object_end(json);
}

static int write_form(const struct format_input *input, bool legacy, FILE *out) {
    struct trace trace = {.legacy = legacy, .threshold = input->threshold, .next_id = 1, .next_guid = 1};

    prepare(&trace, input);
    json_start(&trace.json, out, false);
    write_trace(&trace);

    for (size_t i = 0; i < trace.input_count; i++) {
        free(trace.paths[i].nodes);
        free(trace.paths[i].types);
    }
    for (size_t i = 0; i < trace.track_count; i++) {
        number_set_free(&trace.tracks[i].nodes);
        number_set_free(&trace.tracks[i].types);
    }
    free(trace.paths);
    free(trace.tracks);
    free(trace.moments);
    frame_tree_free(&trace.tree);
    return 0;
}

int chrome_write(const struct format_input *input, FILE *out, struct problem *problem) {
    (void)problem;
    return write_form(input, false, out);
}

int chrome_write_v1(const struct format_input *input, FILE *out, struct problem *problem) {
    (void)problem;
    return write_form(input, true, out);
}
