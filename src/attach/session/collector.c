#include "attach/session/collector.h"

#include "attach/session/target_user.h"
#include "base/memory.h"
#include "base/nanoseconds.h"
#include "core/address_index.h"
#include "core/events.h"
#include "core/heap_size.h"
#include "core/live_table.h"
#include "core/peak_halves.h"
#include "core/recording_begin.h"
#include "core/stack_table.h"
#include "core/thread_table.h"
#include "core/timeline.h"
#include "platform/counter.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTES   (UINT64_C(1) << 20)
#define BLOCK_BUCKETS 1024u
#define MODULES_MOST  65536u

/* A running thread of the process. */
struct member {
    int32_t tid;
    uint32_t record;                 /* its number in the thread table */
    uint64_t forgotten;              /* bytes that it had allocated when collector_forget_all was called */
    struct collected_thread figures; /* as told last */
};

struct collector {
    struct recording recording;
    int pid;
    uint64_t start;
    struct address_index blocks; /* from a block's number to its slot in the live table */
    struct member *members;      /* sorted by tid */
    size_t member_count;
    struct member last;        /* result of the last search: consecutive events often come from one thread */
    uint64_t lost[DROP_KINDS]; /* the figures of the last collector_note_losses */
    uint64_t samples, frees;
};

/* A time of CLOCK_MONOTONIC as recordings have it: nanoseconds since the recording began. */
static uint64_t since_start(const struct collector *collector, uint64_t time) {
    return time > collector->start ? time - collector->start : 0;
}

static uint64_t now_since_start(const struct collector *collector) {
    return since_start(collector, nanoseconds_now(CLOCK_MONOTONIC));
}

/* ---- beginning and end ---- */

/* Puts the content of a file of /proc/PID into the recording. Zero bytes become ARGUMENT_END. */
static uint64_t note_file(struct recording *recording, int pid, const char *name) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file) fclose(file);
    while (length > 0 && text[length - 1] == '\0') length--;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0') text[i] = ARGUMENT_END;
    return length ? arena_text(recording, text, length) : 0;
}

static uint64_t note_executable(struct recording *recording, int pid) {
    char link[64], path[RECORDING_PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t length = readlink(link, path, sizeof path);
    return length > 0 ? arena_text(recording, path, (size_t)length) : 0;
}

static int parent_of(int pid) {
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    /* The second field is the program's name in brackets, which may contain brackets and blanks itself. */
    char text[512] = "";
    if (file && fread(text, 1, sizeof text - 1, file) > 0) {
        const char *after = strrchr(text, ')');
        if (!after || sscanf(after, ") %*c %d", &parent) != 1) parent = 0;
    }
    if (file) fclose(file);
    return parent;
}

static int cannot_begin(const char *path, int error, struct problem *problem) {
    const char *remedy = error == EEXIST ? "name another file with -o, or add -f to replace it"
                         : error == ENOSPC || error == EDQUOT
                             ? "free some space, or name a file on another disk with -o"
                             : "name a file in a folder that can be written to with -o";
    return problem_set(
        problem, problem_kind_of_errno(error), remedy, "cannot write '%s': %s", path, strerror(error));
}

int collector_open(
    const struct collector_options *options, struct collector **ret_collector, struct problem *problem) {
    struct collector *collector = memory_allocate(sizeof *collector);
    collector->pid = options->pid;
    collector->start = nanoseconds_now(CLOCK_MONOTONIC);
    collector->blocks.first = BLOCK_BUCKETS;
    struct recording *recording = &collector->recording;
    int r = arena_create(recording, options->path, options->replace, FIRST_BYTES, options->size_max);
    if (r < 0) {
        free(collector);
        return cannot_begin(options->path, -r, problem);
    }
    struct recording_setup setup = {
        .pid = options->pid,
        .parent_pid = parent_of(options->pid),
        .writer = getpid(),
        .machine = EM_X86_64,
        .filter = FILTER_PROBES,
        .depth = options->depth,
        .rate = options->rate,
        .start_monotonic = collector->start,
        .start_realtime = nanoseconds_now(CLOCK_REALTIME),
    };
    if (!recording_begin(recording, &setup)) {
        unlink(recording->path);
        arena_unmap(recording);
        free(collector);
        return cannot_begin(options->path, ENOSPC, problem);
    }
    struct recording_header *header = recording->header;
    header->executable = note_executable(recording, options->pid);
    header->command_line = note_file(recording, options->pid, "cmdline");
    header->allocator = arena_text(recording, options->allocator, strlen(options->allocator));
    header->target_user = target_user(options->pid);
    if (options->levels_only) header->flags |= RECORDING_LEVELS;
    recording_begin_publish(recording);
    *ret_collector = collector;
    return 0;
}

void collector_close(struct collector *collector) {
    struct recording *recording = &collector->recording;
    for (size_t i = 0; i < collector->member_count; i++)
        timeline_flush(recording, thread_table_get(recording, collector->members[i].record));
    counter_store(&recording->header->last_event, now_since_start(collector));
    arena_close(recording);
    arena_unmap(recording);
    address_index_free(&collector->blocks);
    free(collector->members);
    free(collector);
}

/* ---- threads ---- */

static size_t place_of(const struct collector *collector, int32_t tid) {
    size_t low = 0, high = collector->member_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (collector->members[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void note_name(const struct collector *collector, struct thread_record *record, int32_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", collector->pid, tid);
    FILE *file = fopen(path, "re");
    if (!file) return;
    char name[sizeof record->name] = "";
    if (fgets(name, sizeof name, file)) {
        name[strcspn(name, "\n")] = '\0';
        memcpy(record->name, name, sizeof name);
    }
    fclose(file);
}

/* The record of a thread, which is entered if it is new. NULL if there is no room for it: that is counted. */
static struct thread_record *thread_of(struct collector *collector, int32_t tid, uint64_t now) {
    struct recording *recording = &collector->recording;
    if (collector->last.tid == tid) return thread_table_get(recording, collector->last.record);
    size_t place = place_of(collector, tid);
    if (place == collector->member_count || collector->members[place].tid != tid) {
        uint32_t number = thread_table_register(recording, tid, now);
        if (number == UINT32_MAX) {
            recording->header->drops[DROP_THREAD]++;
            return NULL;
        }
        struct member *members =
            memory_reallocate_array(collector->members, collector->member_count + 1, sizeof *members);
        memmove(&members[place + 1], &members[place], (collector->member_count - place) * sizeof *members);
        members[place] = (struct member){.tid = tid, .record = number};
        collector->members = members;
        collector->member_count++;
        struct thread_record *record = thread_table_get(recording, number);
        record->number = number;
        record->moment = UINT64_MAX;
        note_name(collector, record, tid);
    }
    collector->last = collector->members[place];
    return thread_table_get(recording, collector->last.record);
}

/* Stores the exact figures of a thread: its bytes in its record, what its frees have grown by in the header. */
static void store_figures(
    struct collector *collector, struct member *member, const struct collected_thread *figures) {
    struct recording_header *header = collector->recording.header;
    struct thread_record *record = thread_table_get(&collector->recording, member->record);
    counter_store(&record->bytes, figures->bytes - member->forgotten);
    counter_add(false, &header->frees, figures->frees - member->figures.frees);
    if (header->rate == 1)
        counter_add(false, &header->unknown_frees, figures->frees_unknown - member->figures.frees_unknown);
    member->figures = *figures;
}

void collector_thread_figures(
    struct collector *collector, int32_t thread, const struct collected_thread *figures) {
    if (!thread_of(collector, thread, now_since_start(collector))) return;
    store_figures(collector, &collector->members[place_of(collector, thread)], figures);
}

void collector_thread_ended(
    struct collector *collector, int32_t thread, const struct collected_thread *figures, uint64_t time) {
    struct recording *recording = &collector->recording;
    struct thread_record *record = thread_of(collector, thread, since_start(collector, time));
    if (!record) return;
    size_t place = place_of(collector, thread);
    store_figures(collector, &collector->members[place], figures);
    timeline_flush(recording, record);
    live_table_give_all(recording, record);
    thread_table_end(recording, record, since_start(collector, time));
    collector->member_count--;
    memmove(&collector->members[place], &collector->members[place + 1],
        (collector->member_count - place) * sizeof *collector->members);
    collector->last = (struct member){0};
}

/* ---- blocks ---- */

void collector_allocated(struct collector *collector, const struct collected_block *block) {
    struct recording *recording = &collector->recording;
    struct recording_header *header = recording->header;
    struct thread_record *thread = thread_of(collector, block->thread, since_start(collector, block->time));
    if (!thread) return;
    struct stack_key key = {
        .frames = block->frames, .frame_count = block->frame_count, .flags = block->flags};
    struct sample sample = sample_of_malloc(
        block->size, since_start(collector, block->time), stack_table_intern(recording, &key), LIVE_NONE);
    struct live_entry *entry;
    uint32_t former;
    sample.slot = live_table_take(recording, thread, &entry);
    if (sample.slot == LIVE_NONE) {
        header->drops[DROP_LIVE_TABLE]++;
        return;
    }
    if (!address_index_insert(&collector->blocks, block->number, sample.slot, &former)) {
        live_table_give(recording, thread, sample.slot);
        header->drops[DROP_LIVE_TABLE]++;
        return;
    }
    sample_store(&sample, entry);
    live_table_publish(entry, block->address & LIVE_KEY_MASK);
    events_allocate(recording, thread, &sample);
    counter_add_own(&thread->samples, 1);
    collector->samples++;
}

void collector_freed(struct collector *collector, uint64_t number, int32_t tid, uint64_t time) {
    struct recording *recording = &collector->recording;
    uint32_t slot = address_index_remove(&collector->blocks, number);
    if (slot == INDEX_NONE) return;
    uint64_t now = since_start(collector, time);
    struct thread_record *thread = tid ? thread_of(collector, tid, now) : NULL;
    struct live_entry *entry = live_table_at(recording, slot);
    struct sample sample = sample_of_entry(entry, slot, 0);
    live_table_withdraw(entry);
    events_free(recording, thread, &sample, now);
    live_table_give(recording, thread, slot);
    collector->frees++;
}

void collector_forget_all(struct collector *collector, uint64_t time) {
    struct recording *recording = &collector->recording;
    struct recording_header *header = recording->header;
    uint64_t now = since_start(collector, time);
    for (uint32_t slot = 0; slot < header->live.count; slot++) {
        struct live_entry *entry = live_table_at(recording, slot);
        if (!live_table_address(entry)) continue;
        live_table_withdraw(entry);
        live_table_give(recording, NULL, slot);
    }
    for (uint64_t i = 0; i < header->stacks.count; i++) {
        struct stack_record *stack = stack_table_get(recording, (uint32_t)i);
        /* The stack's frames stay: a stack that occurs again keeps its place. */
        memset(stack, 0, offsetof(struct stack_record, hash));
    }
    for (size_t i = 0; i < collector->member_count; i++) {
        struct thread_record *record = thread_table_get(recording, collector->members[i].record);
        counter_store(&record->samples, 0);
        counter_store(&record->slack, 0);
        collector->members[i].forgotten += counter_load(&record->bytes);
        counter_store(&record->bytes, 0);
    }
    collector->last = (struct member){0};
    address_index_free(&collector->blocks);
    counter_store(&header->live_bytes, 0);
    counter_store(&header->peak_bytes, 0);
    memset(header->halves, 0, sizeof header->halves);
    counter_store(&header->peak_time, now);
    counter_store(&header->frees, 0);
    counter_store(&header->unknown_frees, 0);
    collector->samples = collector->frees = 0;
}

void collector_note_level(struct collector *collector, uint64_t bytes, uint64_t time) {
    struct recording *recording = &collector->recording;
    struct recording_header *header = recording->header;
    uint64_t now = since_start(collector, time), former = counter_load(&header->live_bytes) / BYTE_ONE;
    struct thread_record *thread = thread_of(collector, collector->pid, now);
    if (!thread) return;
    timeline_note(recording, thread, now);
    counter_store(&header->live_bytes, bytes * BYTE_ONE);
    if (counter_raise(true, &header->peak_bytes, bytes * BYTE_ONE)) counter_store(&header->peak_time, now);
    timeline_grow(
        recording, thread, bytes * BYTE_ONE, bytes > former ? (bytes - former) * BYTE_ONE : 0, true);
}

/* ---- modules, losses and figures ---- */

void collector_note_module(
    struct collector *collector, const struct module_record *module, const char *path) {
    struct recording *recording = &collector->recording;
    struct table *table = &recording->header->modules;
    uint64_t text = arena_text(recording, path, strlen(path));
    uint64_t number = text ? table_append(recording, table, MODULES_MOST) : UINT64_MAX;
    if (number == UINT64_MAX) {
        recording->header->drops[DROP_MODULE]++;
        return;
    }
    struct module_record *record = table_entry(recording, table, number);
    *record = *module;
    record->path = text;
    record->first_seen = now_since_start(collector);
    atomic_store_explicit(&record->complete, 1, memory_order_release);
}

void collector_mark_partial(struct collector *collector) {
    collector->recording.header->flags |= RECORDING_PARTIAL;
}

void collector_mark_late(struct collector *collector) {
    collector->recording.header->flags |= RECORDING_LATE;
}

void collector_note_losses(struct collector *collector, const uint64_t lost[DROP_KINDS]) {
    struct recording_header *header = collector->recording.header;
    for (int kind = 0; kind < DROP_KINDS; kind++) {
        header->drops[kind] += lost[kind] - collector->lost[kind];
        collector->lost[kind] = lost[kind];
    }
}

struct collector_figures collector_figures(struct collector *collector) {
    struct recording_header *header = collector->recording.header;
    double live = (double)heap_size(&collector->recording) / BYTE_ONE;
    return (struct collector_figures){
        .live_bytes = live,
        .peak_bytes = peak_halves_estimate(header, live),
        .samples = collector->samples,
        .frees = collector->frees,
    };
}

const char *collector_path(const struct collector *collector) {
    return collector->recording.path;
}
