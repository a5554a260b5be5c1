/* A copy of the recording, made while all threads may be writing it: what model/snapshot.c does from outside,
 * with the same order and the same promises. The live table comes first and the plain rest last, so that
 * whatever one part refers to is in a part that is copied later. The copy goes through a small buffer to its
 * own place in the file; long stretches of zeros are left out. */
#include "core/live_table.h"
#include "core/table.h"
#include "platform/safe_read.h"
#include "platform/system.h"
#include "record/dump/dump.h"

#include <errno.h>
#include <string.h>

#define HEADER_SPAN 4096u
#define TRIES       32 /* how often something that is being written is looked at again */
#define TABLES      4  /* that are copied entry by entry: live, stacks, modules, threads */

struct stretch {
    uint64_t start, end;
};

/* Lies in memory of its own: a signal handler's stack may be small. */
struct copying {
    struct dump_file *file;
    struct recording *recording;
    bool threads_complete;
    struct stretch taken[TABLES * SEGMENTS_MAX + 1];
    size_t taken_count;
    struct table live; /* as it was when it was copied */
    union {
        struct recording_header header;
        uint64_t header_words[HEADER_SPAN / sizeof(uint64_t)];
    };
};

typedef void copy_entry(struct copying *copying, const void *from, void *to);

/* Relaxed: words that may be written just now. What is copied in which order is said by acquires and fences
 * around it, which go with the releases of who publishes: those of each table in core/. */
static void copy_words(void *to, const void *from, size_t size) {
    uint64_t *target = to;
    for (size_t i = 0; i < size / sizeof *target; i++)
        target[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

static bool is_zero(const void *bytes, size_t size) {
    const uint64_t *words = bytes;
    for (size_t i = 0; i < size / sizeof *words; i++)
        if (words[i]) return false;
    return true;
}

static int put(struct copying *copying, uint64_t offset, size_t size) {
    if (is_zero(copying->file->buffer, size)) return 0;
    return dump_file_put(copying->file, offset, copying->file->buffer, size);
}

static void note_taken(struct copying *copying, uint64_t start, uint64_t end) {
    size_t at = copying->taken_count++;
    for (; at > 0 && copying->taken[at - 1].start > start; at--) copying->taken[at] = copying->taken[at - 1];
    copying->taken[at] = (struct stretch){start, end};
}

/* ---- entries ---- */

/* One that is free, or never held still, stays zero. */
static void copy_live(struct copying *copying, const void *from, void *to) {
    (void)copying;
    live_table_copy(from, TRIES, to);
}

/* All words, then once more those that count allocations: they are newer than the frees. The saved figures of
 * the peak belong to their epoch: if it changed meanwhile, again. */
static void copy_stack(struct copying *copying, const void *from, void *to) {
    (void)copying;
    const struct stack_record *stack = from;
    struct stack_record *copy = to;
    const size_t counts = offsetof(struct stack_record, alloc_objects);
    const size_t counts_size = offsetof(struct stack_record, peak_bytes) - counts;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        uint64_t epoch = atomic_load_explicit(&stack->peak_epoch, memory_order_acquire);
        copy_words(to, from, sizeof *stack);
        atomic_thread_fence(memory_order_acquire);
        copy_words((char *)to + counts, (const char *)from + counts, counts_size);
        if (copy->peak_epoch == epoch &&
            atomic_load_explicit(&stack->peak_epoch, memory_order_relaxed) == epoch)
            return;
    }
}

static void copy_module(struct copying *copying, const void *from, void *to) {
    (void)copying;
    const struct module_record *module = from;
    if (atomic_load_explicit(&module->complete, memory_order_acquire) == 1)
        copy_words(to, from, sizeof *module);
}

/* A running thread has allocated, since its last draw, what its countdown has come down. It may be ending:
 * its memory is read in a way that cannot fault. */
static void copy_thread(struct copying *copying, const void *from, void *to) {
    struct thread_record *copy = to, before;
    uint64_t countdown;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        copy_words(to, from, sizeof *copy);
        bool draws = !(copying->header.flags & RECORDING_EXACT);
        if (!draws || copy->state != THREAD_RUNNING || copy->interval == 0) return;
        if (!safe_read(&countdown, copy->countdown_address, sizeof countdown)) break;
        atomic_thread_fence(memory_order_acquire); /* what is read of the thread next is read later */
        before = *copy;
        copy_words(to, from, sizeof *copy);
        bool still = copy->state == before.state && copy->tid == before.tid && copy->bytes == before.bytes &&
                     copy->interval == before.interval && copy->countdown_address == before.countdown_address;
        if (!still || countdown > copy->interval) continue;
        copy->bytes += copy->interval - countdown;
        copy->interval = 0;
        return;
    }
    copying->threads_complete = false;
}

/* ---- parts ---- */

static int copy_table(
    struct copying *copying, const struct table *table, size_t entry_size, copy_entry *copy) {
    uint64_t left = table->count;
    int r = 0;
    for (uint32_t k = 0; k < SEGMENTS_MAX && left && r == 0; k++) {
        uint64_t offset = table->segment[k], entries = (uint64_t)table->first << k;
        if (entries > left) entries = left;
        left -= entries;
        if (!offset) continue;
        note_taken(copying, offset, offset + entries * entry_size);
        for (uint64_t i = 0, some; i < entries && r == 0; i += some) {
            some = DUMP_BUFFER / entry_size;
            if (some > entries - i) some = entries - i;
            memset(copying->file->buffer, 0, some * entry_size);
            for (uint64_t at = 0; at < some; at++)
                copy(copying, arena_at(copying->recording, offset + (i + at) * entry_size),
                    copying->file->buffer + at * entry_size);
            r = put(copying, offset + i * entry_size, some * entry_size);
        }
    }
    return r;
}

static int copy_timeline(struct copying *copying) {
    uint64_t offset = copying->header.timeline;
    const struct timeline *from = arena_at(copying->recording, offset);
    static_assert(sizeof *from <= DUMP_BUFFER, "it fits");
    note_taken(copying, offset, offset + sizeof *from);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        uint64_t sequence = atomic_load_explicit(&from->sequence, memory_order_acquire);
        copy_words(copying->file->buffer, from, sizeof *from);
        atomic_thread_fence(memory_order_acquire);
        if (sequence % 2 == 0 && atomic_load_explicit(&from->sequence, memory_order_relaxed) == sequence)
            break;
        system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return put(copying, offset, sizeof *from);
}

/* Frames, text, the index of the stacks: nothing of it changes once it is there. */
static int copy_plain(struct copying *copying, uint64_t start, uint64_t end) {
    const struct recording *recording = copying->recording;
    int r = 0;
    for (uint64_t at = start & ~UINT64_C(7); at < end && r == 0;) {
        uint32_t piece = arena_piece(recording, at);
        uint64_t piece_end = UINT64_C(1) << (recording->first_shift + piece);
        if (!atomic_load_explicit(&recording->piece[piece], memory_order_acquire)) {
            at = piece_end; /* something large lies behind it, and nothing in it */
            continue;
        }
        uint64_t size = DUMP_BUFFER - at % DUMP_BUFFER;
        if (size > end - at) size = (end - at + 7) & ~UINT64_C(7);
        if (size > piece_end - at) size = piece_end - at;
        copy_words(copying->file->buffer, arena_at(recording, at), size);
        r = put(copying, at, size);
        at += size;
    }
    return r;
}

static int copy_rest(struct copying *copying, uint64_t end) {
    uint64_t at = HEADER_SPAN;
    int r = 0;
    for (size_t i = 0; i < copying->taken_count && r == 0; i++) {
        r = copy_plain(copying, at, copying->taken[i].start);
        if (copying->taken[i].end > at) at = copying->taken[i].end;
    }
    return r == 0 ? copy_plain(copying, at, end) : r;
}

static void read_header(struct copying *copying) {
    copy_words(copying->header_words, copying->recording->header, HEADER_SPAN);
    atomic_thread_fence(memory_order_acquire); /* entries that it counts are read later */
}

/* That of a recording which nobody writes and which ended now. If a thread's bytes could not be completed it
 * reads as killed, which says that up to one interval a thread is missing. */
static void make_stand_alone(struct copying *copying, uint64_t size, uint64_t now) {
    struct recording_header *header = &copying->header;
    header->live = copying->live;
    header->flags |= RECORDING_SNAPSHOT;
    if ((header->flags & RECORDING_EXACT) || copying->threads_complete) header->flags |= RECORDING_FINISHED;
    header->last_event = now;
    header->active = 0;
    header->arena_used = header->arena_reserved = header->size_max = size;
}

static int copy_all(struct copying *copying, uint64_t now) {
    struct recording_header *header = &copying->header;
    read_header(copying);
    memcpy(&copying->live, &header->live, sizeof copying->live);
    int r = copy_table(copying, &copying->live, sizeof(struct live_entry), copy_live);

    read_header(copying);
    if (r == 0) r = copy_table(copying, &header->stacks, sizeof(struct stack_record), copy_stack);
    if (r == 0) r = copy_table(copying, &header->modules, sizeof(struct module_record), copy_module);
    if (r == 0) r = copy_table(copying, &header->threads, sizeof(struct thread_record), copy_thread);
    if (r == 0) r = copy_timeline(copying);

    uint64_t size = atomic_load_explicit(&copying->recording->header->arena_used, memory_order_acquire);
    if (r == 0) r = copy_rest(copying, size);
    make_stand_alone(copying, size, now);
    if (r == 0) r = dump_file_set_size(copying->file, size);
    return r == 0 ? dump_file_put(copying->file, 0, copying->header_words, HEADER_SPAN) : r;
}

int dump_recording_write(struct dump_file *file, struct recording *recording, uint64_t now) {
    struct copying *copying = dump_map(sizeof *copying);
    if (!copying) return -ENOMEM;
    copying->file = file;
    copying->recording = recording;
    copying->threads_complete = true;
    int r = copy_all(copying, now);
    dump_unmap(copying, sizeof *copying);
    return r;
}
