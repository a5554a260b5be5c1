/* The timeline: the heap's size over the whole run in a fixed number of buckets (struct timeline,
 * recording.h).
 *
 * Within a bucket an event writes to it only if it raises the largest size. What a thread has counted goes
 * into the bucket when the thread has its next event in another one, or ends. */
#ifndef MALLOSCOPE_CORE_TIMELINE_H
#define MALLOSCOPE_CORE_TIMELINE_H

#include "core/arena.h"
#include "platform/counter.h"

bool timeline_start(struct recording *recording);

/* `thread` is about to have its first event in the bucket of `now`. */
__attribute__((noinline)) void timeline_turn(
    struct recording *recording, struct thread_record *thread, uint64_t now);

/* What the thread has counted and not yet noted goes into the bucket of its last event. */
void timeline_flush(struct recording *recording, struct thread_record *thread);

/* An event of `thread` at `now`, before the heap's figures change. */
static inline void timeline_note(struct recording *recording, struct thread_record *thread, uint64_t now) {
    uint64_t moment = now >> counter_load(&recording->timeline->shift);
    if (moment != thread->moment) timeline_turn(recording, thread, now);
    counter_add_own(&thread->events, 1);
    counter_store(&thread->last_event, now);
}

/* After it, where the heap has grown: by `allocated` to `live` (BYTE_ONE). */
static inline void timeline_grow(struct recording *recording, struct thread_record *thread, uint64_t live,
    uint64_t allocated, bool alone) {
    uint64_t moment = thread->moment;
    counter_add_own(&thread->allocated, allocated);
    if (moment < TIMELINE_BUCKETS) counter_raise(alone, &recording->timeline->bucket[moment].live_max, live);
}

#endif
