/* The size of the whole heap and its peak, which every event changes.
 *
 * If all threads added to one word, they would wait for each other there. So a thread keeps to itself what it
 * frees, as its slack, and allocates from that first: the header's live_bytes is what is live plus
 * everybody's slack. That is never less than the truth, so as long as it does not exceed the peak there is no
 * new peak that a thread could miss, and nobody needs to look further. Where it does exceed the peak, slack
 * is given back, and the truth is worked out: live_bytes less the slack of all. A thread that allocates what
 * others free would have no slack: it takes some in advance, where the peak leaves room.
 *
 * tests/models/heap_size.pml checks this for all interleavings.
 *
 * One event after another, the peak is exact (tests/unit/test_heap_size.c). Where threads have events at the
 * very same time, what is noted may be less than the largest of the moments between them by what these events
 * change; it is never more than was live. */
#ifndef MALLOSCOPE_CORE_HEAP_SIZE_H
#define MALLOSCOPE_CORE_HEAP_SIZE_H

#include "core/arena.h"
#include "platform/counter.h"

/* Threads with a lower number may have slack: the sum over them must not take long. */
#define SLACK_THREADS 64

/* What a thread may keep: a thousandth of the peak, and some small blocks in any case. */
#define SLACK_LEAST   (UINT64_C(16384) * BYTE_ONE)
#define SLACK_PORTION 1024

/* The heap has grown or shrunk by `bytes`, at `now`. `thread` is NULL if that has no record; `alone` as in
 * counter.h. Growing returns about what is live now, for the timeline: with the slack of all threads, but
 * where it is a peak. So it is not more where the slack is used; then it returns 0. */
uint64_t heap_size_grow_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now);
void heap_size_shrink_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now);

/* What is live, exactly if nothing happens meanwhile. */
uint64_t heap_size(struct recording *recording);

/* What may be live, when `live` is, once the thread has used its slack. */
uint64_t heap_size_reach(struct recording *recording, struct thread_record *thread, uint64_t live);

/* The size is another by `bytes`, not by an event of some thread; or the peak has been lowered. */
void heap_size_change(struct recording *recording, uint64_t bytes, uint64_t now);

/* The thread ends: it keeps nothing. */
void heap_size_give_slack(struct recording *recording, struct thread_record *thread, uint64_t now);

static inline void heap_size_note_peak(
    struct recording_header *header, uint64_t live, uint64_t now, bool alone) {
    if (!counter_raise(alone, &header->peak_bytes, live)) return;
    counter_store(&header->peak_time, now);
    counter_add(alone, &header->peak_epoch, 1);
}

/* There is one thread, and nobody has ever had slack. */
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
