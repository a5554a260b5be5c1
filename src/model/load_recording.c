#include "model/load_recording.h"

#include "base/limits.h"
#include "base/memory.h"
#include "core/heap_table.h"
#include "model/peak.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A copy of a text of the recording, or "[unknown]" if it has none there. */
static char *text_of(struct model_builder *builder, const struct snapshot *snapshot, uint64_t offset) {
    const char *text = snapshot_text(snapshot, offset);
    size_t length = text ? strnlen(text, snapshot->size - offset) : 0;
    if (length == 0 || length > builder->text_left) return memory_copy_text("[unknown]");
    builder->text_left -= length;
    return memory_copy_text_part(text, length);
}

/* Replaces control characters: a name that the program gave must not send commands to the terminal. */
static void clean_name(char *name) {
    for (unsigned char *byte = (unsigned char *)name; *byte; byte++) {
        if (byte[0] < ' ' || byte[0] == 0x7f) byte[0] = '?';
        if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
            byte[0] = byte[1] = '?'; /* U+0080 to U+009F */
    }
}

static bool needs_quotes(const char *start, const char *end) {
    if (start == end) return true;
    for (const char *c = start; c < end; c++)
        if ((unsigned char)*c <= ' ' || strchr("\"'\\$`|&;<>()*?[]{}~#!", *c)) return true;
    return false;
}

/* The arguments of a program, which ARGUMENT_END separates, as one would type them: quoted where a shell needs it,
 * and with control characters written as \xNN. */
static char *shell_words(const char *arguments) {
    char *result = NULL;
    size_t size = 0;
    FILE *out = memory_stream_open(&result, &size);
    for (const char *start = arguments;;) {
        const char *end = strchrnul(start, ARGUMENT_END);
        bool quotes = needs_quotes(start, end);
        if (quotes) fputc('\'', out);
        for (const char *c = start; c < end; c++) {
            if (*c == '\'')
                fputs("'\\''", out);
            else if ((unsigned char)*c < ' ' || *c == 0x7f)
                fprintf(out, "\\x%02x", (unsigned char)*c);
            else
                fputc(*c, out);
        }
        if (quotes) fputc('\'', out);
        /* The recorder may end the last argument with a separator too. */
        if (*end == '\0' || end[1] == '\0') break;
        fputc(' ', out);
        start = end + 1;
    }
    memory_stream_close(out);
    return result;
}

/* The owner of the file chose what is in it. If that is the reader, who attached to the program, then the program's
 * user did. */
static int64_t user_of(const struct snapshot *snapshot) {
    const struct recording_header *header = snapshot_header(snapshot);
    return header->writer && snapshot->owner == geteuid() ? (int64_t)header->target_user - 1
                                                          : snapshot->owner;
}

static void load_process(struct model_builder *builder, const struct snapshot *snapshot, const char *path) {
    const struct recording_header *header = snapshot_header(snapshot);
    struct model *model = builder->model;
    model_builder_grow(
        &model->processes, &builder->process_capacity, model->process_count, 1, sizeof *model->processes);
    char *arguments = text_of(builder, snapshot, header->command_line);
    struct model_process process = {
        .source = memory_copy_text(path),
        .pid = header->pid,
        .parent_pid = header->parent_pid,
        .running_pid = snapshot->state == PROCESS_RUNNING ? snapshot->writer : 0,
        .state = snapshot->state,
        .attached = header->writer != 0,
        .user = user_of(snapshot),
        .is_snapshot = header->flags & RECORDING_SNAPSHOT,
        .flags = header->flags,
        .growth_error = (int)header->growth_error,
        .filter = header->filter,
        .rate = header->rate,
        .executable = text_of(builder, snapshot, header->executable),
        .command_line = shell_words(arguments),
        .allocator = text_of(builder, snapshot, header->allocator),
        .start_realtime = header->start_realtime,
        .first_thread = UINT64_MAX,
        .duration = (double)snapshot->elapsed / 1e9,
        .peak_seconds = (double)header->peak_time / 1e9,
        .file_bytes = snapshot->file_bytes,
        .recorder_bytes = snapshot->recorder_bytes,
    };
    free(arguments);
    model->processes[model->process_count++] = process;
}

static void strip_deleted(struct model_module *module) {
    static const char DELETED[] = " (deleted)";
    size_t length = strlen(module->path), suffix = strlen(DELETED);
    module->deleted = length > suffix && strcmp(module->path + length - suffix, DELETED) == 0;
    if (module->deleted) module->path[length - suffix] = '\0';
}

static void load_modules(struct model_builder *builder, const struct snapshot *snapshot, const char *path) {
    struct model *model = builder->model;
    uint64_t unreadable = 0;
    struct table_cursor cursor = {0};
    for (const struct module_record *record;
         (record = snapshot_next(snapshot, &snapshot->modules, &cursor));) {
        if (record->complete != 1) continue;
        const struct module_record mapped = *record;
        const char *name = snapshot_text(snapshot, mapped.path);
        if (mapped.start >= mapped.end || !name) {
            unreadable++;
            continue;
        }
        model_builder_grow(
            &model->modules, &builder->module_capacity, model->module_count, 1, sizeof *model->modules);
        model_builder_grow(
            &model->numbered, &builder->numbered_capacity, model->module_count, 1, sizeof *model->numbered);
        struct model_module *module = &model->modules[model->module_count++];
        *module = (struct model_module){
            .start = mapped.start,
            .end = mapped.end,
            .file_offset = mapped.file_offset,
            .number = (uint32_t)cursor.number,
            .by_number = mapped.by_number,
            .first_seen = mapped.first_seen,
            .process = (uint32_t)model->process_count - 1,
            .path = *name ? text_of(builder, snapshot, mapped.path) : memory_copy_text(MODULE_ANONYMOUS),
            .inode = mapped.inode,
            .device_major = mapped.device_major,
            .device_minor = mapped.device_minor,
        };
        strip_deleted(module);
        if (mapped.build_id_size <= sizeof module->build_id) {
            module->build_id_size = mapped.build_id_size;
            memcpy(module->build_id, mapped.build_id, sizeof module->build_id);
        }
    }
    if (unreadable)
        model_builder_warn_damage(
            builder, "'%s' is damaged: %" PRIu64 " mapped files cannot be read", path, unreadable);
}

/* Fills the process's part of `texts` by number. A text that cannot be read is NULL. */
static void load_texts(struct model_builder *builder, const struct snapshot *snapshot) {
    struct model *model = builder->model;
    struct model_process *process = &model->processes[model->process_count - 1];
    process->first_text = model->text_count;
    struct table_cursor cursor = {0};
    for (const struct name_record *record; (record = snapshot_next(snapshot, &snapshot->names, &cursor));) {
        if (cursor.number >= NAMES_MOST) break; /* damaged: a table of all numbers below would be huge */
        size_t last = process->first_text + cursor.number;
        model_builder_grow(&model->texts, &builder->text_capacity, model->text_count,
            last + 1 - model->text_count, sizeof *model->texts);
        while (model->text_count <= last) model->texts[model->text_count++] = NULL;
        if (!snapshot_text(snapshot, record->text)) continue;
        model->texts[last] = text_of(builder, snapshot, record->text);
        clean_name(model->texts[last]);
    }
    process->text_count = model->text_count - process->first_text;
}

static const char malloc_name[] = HEAP_MALLOC;

static void add_heap(struct model_builder *builder, uint32_t number, const char *name, uint64_t rate) {
    struct model *model = builder->model;
    model_builder_grow(&model->heaps, &builder->heap_capacity, model->heap_count, 1, sizeof *model->heaps);
    model->heaps[model->heap_count++] = (struct model_heap){
        .process = (uint32_t)model->process_count - 1, .number = number, .name = name, .rate = rate};
    if (name == malloc_name) model->malloc_heap_count++;
}

/* A heap that the program registered under the name "malloc" must not be taken for malloc's. */
static const char *heap_name(const struct model *model, const struct heap_record *record) {
    if (record->kind == HEAP_OF_MALLOC) return malloc_name;
    const char *name = model_find_text(model, (uint32_t)model->process_count - 1, record->name);
    if (!name) return "[unnamed heap]";
    return strcmp(name, HEAP_MALLOC) == 0 ? HEAP_MALLOC " [registered]" : name;
}

static void load_heaps(struct model_builder *builder, const struct snapshot *snapshot, const char *path) {
    struct model *model = builder->model;
    model->processes[model->process_count - 1].first_heap = model->heap_count;
    add_heap(builder, 0, malloc_name, snapshot_header(snapshot)->rate);
    struct table_cursor cursor = {0};
    for (const struct heap_record *record; (record = snapshot_next(snapshot, &snapshot->heaps, &cursor));) {
        if (cursor.number >= HEAPS_MOST) {
            model_builder_warn_damage(
                builder, "'%s' is damaged: it has more than %u heaps", path, HEAPS_MOST);
            break;
        }
        uint64_t rate = record->rate;
        if (cursor.number == 0 || record->complete != 1 || rate == 0) continue;
        add_heap(builder, (uint32_t)cursor.number, heap_name(model, record), rate);
    }
}

static void load_code(struct model_builder *builder, const struct snapshot *snapshot,
    const struct code_record *record, struct model_code *code) {
    if (record->complete != 1 || !snapshot_text(snapshot, record->name)) return;
    code->name = text_of(builder, snapshot, record->name);
    clean_name(code->name);
    code->file = model_find_text(builder->model, (uint32_t)builder->model->process_count - 1, record->file);
    code->first_line = record->first_line;
}

/* Fills the process's part of `codes` by number. A function that cannot be read has no name. */
static void load_codes(struct model_builder *builder, const struct snapshot *snapshot) {
    struct model *model = builder->model;
    struct model_process *process = &model->processes[model->process_count - 1];
    process->first_code = model->code_count;
    struct table_cursor cursor = {0};
    for (const struct code_record *record; (record = snapshot_next(snapshot, &snapshot->codes, &cursor));) {
        if (cursor.number >= CODE_OBJECTS_MOST) break;
        size_t last = process->first_code + cursor.number;
        model_builder_grow(&model->codes, &builder->code_capacity, model->code_count,
            last + 1 - model->code_count, sizeof *model->codes);
        while (model->code_count <= last) model->codes[model->code_count++] = (struct model_code){0};
        load_code(builder, snapshot, record, &model->codes[last]);
    }
    process->code_count = model->code_count - process->first_code;
}

/* Returns whether the threads' own counters are complete. */
static bool load_threads(struct model_builder *builder, const struct snapshot *snapshot) {
    const struct recording_header *header = snapshot_header(snapshot);
    struct model *model = builder->model;
    bool flushed = header->flags & (RECORDING_EXACT | RECORDING_FINISHED), is_complete = true;
    struct table_cursor cursor = {0};
    for (const struct thread_record *record;
         (record = snapshot_next(snapshot, &snapshot->threads, &cursor));) {
        if (record->state == THREAD_FREE || record->state == THREAD_NEW) continue;
        model_builder_grow(
            &model->threads, &builder->thread_capacity, model->thread_count, 1, sizeof *model->threads);
        struct model_thread *thread = &model->threads[model->thread_count++];
        *thread = (struct model_thread){
            .process = (uint32_t)model->process_count - 1,
            .tid = record->tid,
            .running = record->state == THREAD_RUNNING && snapshot->state == PROCESS_RUNNING,
            .start_time = record->start_time,
            .end_time = record->end_time,
            .exact_bytes = (double)record->bytes,
            .exact_is_complete = flushed || record->state == THREAD_ENDED || record->interval == 0,
            .samples = record->samples,
        };
        memcpy(thread->name, record->name, sizeof record->name);
        clean_name(thread->name);
        struct model_process *process = &model->processes[model->process_count - 1];
        if (thread->start_time < process->first_thread) process->first_thread = thread->start_time;
        model->totals.exact_total_bytes += thread->exact_bytes;
        is_complete &= thread->exact_is_complete;
    }
    struct model_process *process = &model->processes[model->process_count - 1];
    if (process->first_thread == UINT64_MAX) process->first_thread = 0; /* it has none */
    model->totals.exact_total_bytes += (double)header->orphan_bytes;
    model->totals.exact_is_complete &= is_complete;
    return is_complete;
}

/* Whether the process that was added last has heaps besides malloc's. */
static bool has_own_heaps(const struct model *model) {
    size_t first = model->processes[model->process_count - 1].first_heap;
    for (size_t i = first; i < model->heap_count; i++)
        if (model->heaps[i].name != malloc_name) return true;
    return false;
}

/* Adds what the threads have counted and not yet put into the timeline, and sets the last level:
 * header.live_bytes − Σ slack(t) = live bytes (core/heap_size.h). */
static void complete_timeline(const struct snapshot *snapshot, struct timeline *timeline) {
    struct table_cursor cursor = {0};
    uint64_t live = snapshot_header(snapshot)->live_bytes, slack = 0;
    for (const struct thread_record *thread;
         (thread = snapshot_next(snapshot, &snapshot->threads, &cursor));) {
        slack += thread->slack & SLACK_MASK;
        uint64_t place = thread->last_event >> timeline->shift;
        if (place >= TIMELINE_BUCKETS || thread->events <= thread->events_noted) continue;
        timeline->bucket[place].events += thread->events - thread->events_noted;
        timeline->bucket[place].allocated += thread->allocated - thread->allocated_noted;
    }
    for (int last = TIMELINE_BUCKETS; last-- > 0;)
        if (timeline->bucket[last].events) {
            timeline->bucket[last].live_last = live > slack ? live - slack : 0;
            break;
        }
}

/* A bucket without events keeps the level of the bucket before it. */
static void load_timeline(struct model_builder *builder, const struct snapshot *snapshot, const char *path) {
    const struct recording_header *header = snapshot_header(snapshot);
    struct model *model = builder->model;
    if (!snapshot_has(snapshot, header->timeline, sizeof(struct timeline)) || header->timeline % 8 != 0)
        return;
    if (snapshot->timeline_torn) {
        model_builder_warn(builder, "the timeline of '%s' is left out: it was being condensed, and %s", path,
            snapshot->state == PROCESS_RUNNING ? "did not settle" : "the program ended within that");
        return;
    }
    /* A copy is completed, since the snapshot itself may be written into an archive. */
    struct timeline copy, *timeline = &copy;
    memcpy(timeline, snapshot->bytes + header->timeline, sizeof copy);
    if (timeline->shift > 54) { /* 512 buckets of a larger width are more than 2^64 ns */
        model_builder_warn_damage(builder, "'%s' is damaged: its timeline cannot be read", path);
        return;
    }
    complete_timeline(snapshot, timeline);
    size_t count = 0;
    for (size_t i = 0; i < TIMELINE_BUCKETS; i++)
        if (timeline->bucket[i].events || i <= snapshot->elapsed >> timeline->shift) count = i + 1;
    model->timeline = memory_allocate_array(count, sizeof *model->timeline);
    model->moment_count = count;
    double width = (double)(UINT64_C(1) << timeline->shift) / 1e9, level = 0;
    for (size_t i = 0; i < count; i++) {
        const struct timeline_bucket *bucket = &timeline->bucket[i];
        struct model_moment *moment = &model->timeline[i];
        *moment = (struct model_moment){((double)i + 0.5) * width, width, level, level, 0, bucket->events};
        if (bucket->events) {
            moment->live_max = (double)bucket->live_max / BYTE_ONE;
            moment->live_last = level = (double)bucket->live_last / BYTE_ONE;
            moment->allocated = (double)bucket->allocated / BYTE_ONE;
        }
    }
}

/* The table is copied, because the file that the snapshot may be can still change. */
static void load_unrecorded(struct model_builder *builder, const struct snapshot *snapshot) {
    uint64_t offset = snapshot_header(snapshot)->unrecorded;
    struct unrecorded_programs table;
    if (!snapshot_has(snapshot, offset, sizeof table)) return;
    memcpy(&table, snapshot->bytes + offset, sizeof table);
    unrecorded_list_add(&builder->model->unrecorded, &table);
}

static void warn_of_table(
    struct model_builder *builder, const struct checked_table *table, const char *name, const char *path) {
    if (table->damaged)
        model_builder_warn_damage(builder, "'%s' is damaged: its table of %s cannot be read", path, name);
    else if (table->lost)
        model_builder_warn_damage(
            builder, "'%s' is damaged: part of its table of %s lies outside the file", path, name);
}

/* Adds warnings about what is missing. Fails if there are no stacks, since nothing could be said then. */
static int check_damage(struct model_builder *builder, const struct snapshot *snapshot, const char *path,
    struct problem *problem) {
    const struct checked_table *stacks = &snapshot->stacks;
    if (stacks->damaged || (stacks->count && stacks->lost == stacks->count))
        return problem_set(problem, PROBLEM_DAMAGED, "get a whole copy of the file, or record again",
            "'%s' is damaged: its table of stacks %s", path,
            snapshot->bytes_in_use > snapshot->size ? "is cut off" : "cannot be read");
    if (snapshot->bytes_in_use > snapshot->size && !snapshot->pages_lost)
        model_builder_warn_damage(builder,
            "'%s' is cut off: the last %" PRIu64 " of %" PRIu64 " bytes are missing", path,
            snapshot->bytes_in_use - snapshot->size, snapshot->bytes_in_use);
    else if (snapshot->bytes_in_use < HEADER_SPAN)
        model_builder_warn_damage(
            builder, "'%s' is damaged: its header does not say how much of it is used", path);
    warn_of_table(builder, stacks, "stacks", path);
    warn_of_table(builder, &snapshot->live, "live samples", path);
    warn_of_table(builder, &snapshot->threads, "threads", path);
    warn_of_table(builder, &snapshot->modules, "mapped files", path);
    warn_of_table(builder, &snapshot->names, "names", path);
    warn_of_table(builder, &snapshot->heaps, "heaps", path);
    if (snapshot->writer_is_hidden && snapshot->state == PROCESS_KILLED)
        model_builder_warn(builder,
            "process %d may still be writing '%s', but this user cannot look into it: it is shown as ended",
            snapshot_header(snapshot)->pid, path);
    return 0;
}

int load_recording(struct model_builder *builder, const struct snapshot *snapshot, const char *path,
    struct problem *problem) {
    struct model *model = builder->model;
    const struct recording_header *header = snapshot_header(snapshot);
    int r = check_damage(builder, snapshot, path, problem);
    if (r < 0) return r;

    builder->text_left = 4 * snapshot->size + (UINT64_C(1) << 20);
    load_process(builder, snapshot, path);
    load_texts(builder, snapshot);
    load_heaps(builder, snapshot, path);
    load_codes(builder, snapshot);
    size_t first_stack = model->stack_count;
    load_stacks(builder, snapshot, path);
    load_modules(builder, snapshot, path);
    double counted_before = model->totals.exact_total_bytes;
    bool counts = load_threads(builder, snapshot);
    load_unrecorded(builder, snapshot);
    /* Several processes have no common time. The timeline of the first is read, and model_builder_finish drops it
     * if there are others. */
    if (model->process_count == 1) load_timeline(builder, snapshot, path);
    if (snapshot_lost_pages(snapshot))
        model_builder_warn_damage(
            builder, "'%s' was cut short while it was being read: figures may be missing", path);
    /* The threads' own counters know of malloc's heap alone. */
    double counted = model->totals.exact_total_bytes - counted_before;
    bool bounds = counts && counted > 0 && !model->damaged && !has_own_heaps(model);
    peak_settle(model, header, first_stack, bounds ? counted : INFINITY);
    model->totals.recorder_bytes += snapshot->recorder_bytes;
    model->totals.unknown_frees += header->unknown_frees;
    model->totals.frees += header->frees;
    for (int i = 0; i < DROP_KINDS; i++) {
        model->totals.drops[i] += header->drops[i];
        if (i != DROP_CHILD) model->totals.drops_total += header->drops[i];
    }
    for (size_t i = 0; i < model->heap_count; i++) {
        if (model->heaps[i].rate > model->rate) model->rate = model->heaps[i].rate;
        if (model->heaps[i].rate != 1) model->exact = false;
    }
    if (header->flags & RECORDING_LEVELS) model->levels_only = true;
    if (header->flags & RECORDING_PARTIAL) model->is_partial = true;
    if (header->flags & RECORDING_LATE) model->is_late = true;
    if (header->flags & RECORDING_PAUSED) model->was_paused = true;
    return 0;
}

int load_recording_alone(const char *path, struct model **ret_model, struct problem *problem) {
    struct model_builder builder = {.until = UINT64_MAX};
    struct recording_file file;
    struct snapshot snapshot;
    model_builder_start(&builder);
    int r = recording_file_open(path, 0, &file, problem);
    if (r == 0) {
        r = snapshot_take(&file, &snapshot, problem);
        recording_file_close(&file);
    }
    if (r == 0) {
        r = load_recording(&builder, &snapshot, path, problem);
        snapshot_free(&snapshot);
    }
    if (r == 0)
        *ret_model = model_builder_finish(&builder);
    else
        model_builder_discard(&builder);
    return r;
}
