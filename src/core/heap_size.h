/* The size of the whole heap (its live bytes) and its peak. Every event changes them.
 *
 * If all threads added to one word, they would wait for each other's cache line. So a thread keeps what it frees as
 * its slack (thread_record.slack), and takes its next allocations from the slack, without a write to the shared
 * word:
 *
 *     header.live_bytes − Σ slack(t) = live bytes        for all threads t, while no thread is inside an event
 *
 * So header.live_bytes is never less than the live bytes. There are two cases:
 *
 *     header.live_bytes ≤ header.peak_bytes   calm: no moment can be a new peak, and no thread looks further
 *     header.live_bytes > header.peak_bytes   tense (header.is_tense): a thread gives its slack back at its
 *                                             next event and uses none; it measures the live bytes by the
 *                                             equation above, and raises the peak
 *
 * A thread that allocates what other threads free would never have slack. It takes some in advance, as far as
 * header.live_bytes does not exceed the peak by that.
 *
 * tests/models/heap_size.pml checks this for all interleavings.
 *
 * If events come one after another, the peak is exact (tests/unit/test_heap_size.c). If several threads have events
 * at the same time, the recorded peak may be less than the largest size between these events, by what these events
 * change. It is never more than was live. */
#ifndef MALLOSCOPE_CORE_HEAP_SIZE_H
#define MALLOSCOPE_CORE_HEAP_SIZE_H

#include "core/arena.h"
#include "platform/counter.h"

/* Threads with a lower number may have slack. Few enough that the sum over all of them does not take long. */
#define SLACK_THREADS 64

/* The most slack that a thread may have: peak / SLACK_PORTION, but at least SLACK_LEAST. */
#define SLACK_LEAST   (UINT64_C(16384) * BYTE_ONE)
#define SLACK_PORTION 1024

/* The heap has grown or shrunk by `bytes` at `now`. `thread` is NULL if the thread has no record; heap_size_grow
 * and heap_size_shrink below are what events call. Growing returns the size for the timeline: header.live_bytes, or
 * the live bytes if that is above the peak. 0 if the allocation was taken from slack: header.live_bytes has not
 * grown then. */
uint64_t heap_size_grow_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now);
void heap_size_shrink_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now);

/* The live bytes. Exact if no event happens meanwhile. */
uint64_t heap_size(struct recording *recording);

/* If `live` bytes are live: how many may be live before `thread` writes to header.live_bytes again. That is `live`
 * plus the thread's slack, but no more than the peak. */
uint64_t heap_size_reach(struct recording *recording, struct thread_record *thread, uint64_t live);

/* The heap's size has changed by `bytes`, but not by an event of a thread. Also to be called, with 0 bytes, after
 * the peak has been lowered. */
void heap_size_change(struct recording *recording, uint64_t bytes, uint64_t now);

/* The thread ends, and gives its slack back. */
void heap_size_give_slack(struct recording *recording, struct thread_record *thread, uint64_t now);

/* Raises the peak to `live` if that is more. */
static inline void heap_size_note_peak(
    struct recording_header *header, uint64_t live, uint64_t now, bool alone) {
    if (!counter_raise(alone, &header->peak_bytes, live)) return;
    counter_store(&header->peak_time, now);
    counter_add(alone, &header->peak_epoch, 1);
}

/* Whether the process has one thread and no thread has ever had slack: header.live_bytes is then the live bytes.
 * `alone` as in platform/counter.h. */
static inline bool heap_size_is_mine(struct recording_header *header, bool alone) {
    return alone && !counter_load(&header->has_slack);
}

static inline uint64_t heap_size_grow(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now, bool alone) {
    struct recording_header *header = recording->header;
    if (!heap_size_is_mine(header, alone)) return heap_size_grow_shared(recording, thread, bytes, now);
    uint64_t live = counter_sum(true, &header->live_bytes, bytes);
    heap_size_note_peak(header, live, now, true);
    return live;
}

static inline void heap_size_shrink(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now, bool alone) {
    struct recording_header *header = recording->header;
    if (heap_size_is_mine(header, alone))
        counter_add(true, &header->live_bytes, -bytes);
    else
        heap_size_shrink_shared(recording, thread, bytes, now);
}

#endif
