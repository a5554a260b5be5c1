/* A copy of the recording, made by the program itself while its threads go on writing it. The order of the
 * parts, and why an entry that changes is copied whole, are told in core/recording_copy.h; model/snapshot_take.c
 * makes such a copy from outside.
 *
 * Everything goes through one small buffer to the offset in the file that it has in the recording. Buffers
 * that hold nothing but zeros are not written: the file has holes there. */
#include "core/live_table.h"
#include "core/recording_copy.h"
#include "core/table.h"
#include "platform/pages.h"
#include "platform/safe_read.h"
#include "platform/system.h"
#include "record/dump/dump.h"

#include <errno.h>
#include <string.h>

#define TABLES 4 /* that are copied entry by entry: live, stacks, modules, threads */

struct stretch {
    uint64_t start, end;
};

/* Too large for the stack of a signal handler: it has memory of its own. */
struct copying {
    struct dump_file *file;
    struct recording *recording;
    bool threads_complete; /* every running thread's countdown could be read */
    /* What is copied already, by offset: the segments of the tables, and the timeline. */
    struct stretch taken[TABLES * SEGMENTS_MAX + 1];
    size_t taken_count;
    struct table live; /* header.live as it was when the live table was copied */
    union {
        struct recording_header header;
        uint64_t header_words[HEADER_SPAN / sizeof(uint64_t)];
    };
};

/* Copies the entry at `from` to `to`, which is zero. */
typedef void copy_entry(struct copying *copying, const void *from, void *to);

static bool is_zero(const void *bytes, size_t size) {
    const uint64_t *words = bytes;
    for (size_t i = 0; i < size / sizeof *words; i++)
        if (words[i]) return false;
    return true;
}

/* Writes the first `size` bytes of the buffer. */
static int put(struct copying *copying, uint64_t offset, size_t size) {
    if (is_zero(copying->file->buffer, size)) return 0;
    return dump_file_put(copying->file, offset, copying->file->buffer, size);
}

/* Keeps `taken` in order. */
static void note_taken(struct copying *copying, uint64_t start, uint64_t end) {
    size_t at = copying->taken_count++;
    for (; at > 0 && copying->taken[at - 1].start > start; at--) copying->taken[at] = copying->taken[at - 1];
    copying->taken[at] = (struct stretch){start, end};
}

/* ---- entries ---- */

/* An entry stays zero if its slot is free, or if it changed during each of the tries. */
static void copy_live(struct copying *copying, const void *from, void *to) {
    (void)copying;
    live_table_copy(from, RECORDING_COPY_TRIES, to);
}

static void copy_stack(struct copying *copying, const void *from, void *to) {
    (void)copying;
    recording_copy_stack(to, from, RECORDING_COPY_TRIES);
}

static void copy_module(struct copying *copying, const void *from, void *to) {
    (void)copying;
    const struct module_record *module = from;
    if (atomic_load_explicit(&module->complete, memory_order_acquire) == 1)
        recording_copy_words(to, from, sizeof *module);
}

/* The thread may be ending, and its memory be unmapped: the countdown is read in a way that cannot fault. */
static void copy_thread(struct copying *copying, const void *from, void *to) {
    struct thread_record *copy = to, before;
    uint64_t countdown;
    for (int attempt = 0; attempt < RECORDING_COPY_TRIES; attempt++) {
        recording_copy_words(to, from, sizeof *copy);
        bool draws = !(copying->header.flags & RECORDING_EXACT);
        if (!draws || copy->state != THREAD_RUNNING || copy->interval == 0) return;
        if (!safe_read(&countdown, copy->countdown_address, sizeof countdown)) break;
        atomic_thread_fence(memory_order_acquire); /* the second copy is read after the countdown */
        before = *copy;
        recording_copy_words(to, from, sizeof *copy);
        if (recording_copy_add_countdown(copy, &before, countdown)) return;
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
    struct timeline *to = (struct timeline *)copying->file->buffer;
    static_assert(sizeof *to <= DUMP_BUFFER, "it fits");
    note_taken(copying, offset, offset + sizeof *to);
    for (int attempt = 0; attempt < RECORDING_COPY_TRIES; attempt++) {
        if (recording_copy_timeline(to, arena_at(copying->recording, offset))) break;
        system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return put(copying, offset, sizeof *to);
}

/* Frames and text do not change once something refers to them. The index of the stacks does; no reader of a
 * recording uses it. */
static int copy_plain(struct copying *copying, uint64_t start, uint64_t end) {
    const struct recording *recording = copying->recording;
    int r = 0;
    for (uint64_t at = start & ~UINT64_C(7); at < end && r == 0;) {
        uint32_t piece = arena_piece(recording, at);
        uint64_t piece_end = UINT64_C(1) << (recording->first_shift + piece);
        if (!atomic_load_explicit(&recording->piece[piece], memory_order_acquire)) {
            /* A request that did not fit into this piece was served from a later one: this one is empty. */
            at = piece_end;
            continue;
        }
        uint64_t size = DUMP_BUFFER - at % DUMP_BUFFER;
        if (size > end - at) size = (end - at + 7) & ~UINT64_C(7);
        if (size > piece_end - at) size = piece_end - at;
        recording_copy_words(copying->file->buffer, arena_at(recording, at), size);
        r = put(copying, at, size);
        at += size;
    }
    return r;
}

/* All that lies between the stretches that were taken. */
static int copy_rest(struct copying *copying, uint64_t end) {
    uint64_t at = HEADER_SPAN;
    int r = 0;
    for (size_t i = 0; i < copying->taken_count && r == 0; i++) {
        r = copy_plain(copying, at, copying->taken[i].start);
        if (copying->taken[i].end > at) at = copying->taken[i].end;
    }
    return r == 0 ? copy_plain(copying, at, end) : r;
}

/* Its acquire loads come before those of the entries that it counts. */
static void read_header(struct copying *copying) {
    recording_copy_words(copying->header_words, copying->recording->header, HEADER_SPAN);
}

/* Turns the copied header into that of a recording that ended now. If the bytes of some thread could not be
 * completed, the copy is not marked as finished. It then reads as the recording of a killed program, for which
 * readers know that up to one sampling interval per thread is missing. */
static void make_stand_alone(struct copying *copying, uint64_t size, uint64_t now) {
    struct recording_header *header = &copying->header;
    header->live = copying->live;
    header->flags |= RECORDING_SNAPSHOT;
    if ((header->flags & RECORDING_EXACT) || copying->threads_complete) header->flags |= RECORDING_FINISHED;
    header->last_event = now;
    header->active = 0;
    header->arena_used = header->arena_reserved = header->size_max = size;
}

/* The header is read twice: the live table may have grown by the time its entries are copied, and the stacks
 * that these entries name must be counted by the header that the stacks are copied with. */
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
    struct copying *copying = pages_take(sizeof *copying);
    if (!copying) return -ENOMEM;
    copying->file = file;
    copying->recording = recording;
    copying->threads_complete = true;
    int r = copy_all(copying, now);
    pages_give(copying, sizeof *copying);
    return r;
}
