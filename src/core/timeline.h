/* The timeline: the heap's size over the whole run, in a fixed number of buckets of time (struct timeline in
 * recording.h).
 *
 * An event writes to its bucket only if it raises the bucket's largest size. A thread counts its events and
 * allocated bytes in its own record. These counts go into the bucket when the thread has its next event in another
 * bucket, or ends. */
#ifndef MALLOSCOPE_CORE_TIMELINE_H
#define MALLOSCOPE_CORE_TIMELINE_H

#include "core/arena.h"
#include "platform/counter.h"

bool timeline_start(struct recording *recording);

/* `thread` is about to have its first event in the bucket of `now`: opens that bucket, and closes the one before. */
__attribute__((noinline)) void timeline_turn(
    struct recording *recording, struct thread_record *thread, uint64_t now);

/* Adds what the thread has counted, and has not added yet, to the bucket of its last event. */
void timeline_flush(struct recording *recording, struct thread_record *thread);

/* To be called for an event of `thread` at `now`, before the heap's figures change. */
static inline void timeline_note(struct recording *recording, struct thread_record *thread, uint64_t now) {
    uint64_t moment = now >> counter_load(&recording->timeline->shift);
    if (moment != thread->moment) timeline_turn(recording, thread, now);
    counter_add_own(&thread->events, 1);
    counter_store(&thread->last_event, now);
}

/* To be called after an allocation: the heap has grown by `allocated` to `live`, in units of 1 / BYTE_ONE. `live` 0
 * = not known, because the allocation was taken from slack (heap_size_grow). */
static inline void timeline_grow(struct recording *recording, struct thread_record *thread, uint64_t live,
    uint64_t allocated, bool alone) {
    uint64_t moment = thread->moment;
    counter_add_own(&thread->allocated, allocated);
    if (moment < TIMELINE_BUCKETS) counter_raise(alone, &recording->timeline->bucket[moment].live_max, live);
}

#endif
