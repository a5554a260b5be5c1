#include "core/timeline.h"

#include "core/heap_size.h"
#include "platform/counter.h"

#define FIRST_SHIFT 20 /* at first a bucket is 2^20 ns wide, about a millisecond: half a second in all */

/* Buckets hold sums and maxima, which are updated relaxed (counter.h). Only the merging of buckets needs an order:
 * `sequence` is odd while it lasts, as in a sequence lock. A reader acquires an even sequence, copies the buckets,
 * each word by an acquire, and compares the sequence; if it differs, the reader copies again (recording_copy_timeline
 * in recording_copy.h). Threads that have an event during a merge do not wait: their event may be counted in a
 * bucket that has just moved. */

bool timeline_start(struct recording *recording) {
    uint64_t offset = arena_allocate(recording, sizeof(struct timeline), 64);
    if (!offset) return false;
    struct timeline *timeline = arena_at(recording, offset);
    /* Relaxed: no other thread knows the recording yet. */
    atomic_store_explicit(&timeline->shift, FIRST_SHIFT, memory_order_relaxed);
    recording->header->timeline = offset;
    recording->timeline = timeline;
    return true;
}

static void move(_Atomic uint64_t *to, uint64_t value) {
    atomic_store_explicit(to, value, memory_order_relaxed);
}
static uint64_t take(_Atomic uint64_t *from) {
    return atomic_exchange_explicit(from, 0, memory_order_relaxed);
}

/* Merges each two neighbouring buckets, which doubles the width of a bucket, if `now` lies beyond the last one. One
 * thread does so; the others return at once. */
static void widen(struct timeline *timeline, uint64_t now) {
    /* Acquire, here and in the exchange: pairs with the release at the end. This thread sees the buckets as the
     * last merge left them. */
    uint64_t sequence = atomic_load_explicit(&timeline->sequence, memory_order_acquire);
    if ((sequence & 1) || !atomic_compare_exchange_strong_explicit(&timeline->sequence, &sequence,
                              sequence + 1, memory_order_acquire, memory_order_relaxed))
        return;
    if (now >> atomic_load_explicit(&timeline->shift, memory_order_relaxed) < TIMELINE_BUCKETS) {
        atomic_store_explicit(
            &timeline->sequence, sequence, memory_order_release); /* another thread has merged */
        return;
    }
    /* Release fence: a reader that sees one of the stores that follow also sees the odd sequence. */
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < TIMELINE_BUCKETS; i++) {
        struct timeline_bucket *into = &timeline->bucket[i];
        if (i >= TIMELINE_BUCKETS / 2) {
            move(&into->live_max, 0), move(&into->live_last, 0), move(&into->allocated, 0),
                move(&into->events, 0);
            continue;
        }
        struct timeline_bucket *first = &timeline->bucket[2 * i], *second = first + 1;
        uint64_t events = take(&second->events), last = take(&second->live_last);
        uint64_t first_max = take(&first->live_max), second_max = take(&second->live_max);
        uint64_t first_last = take(&first->live_last);
        move(&into->allocated, take(&first->allocated) + take(&second->allocated));
        move(&into->live_last, events ? last : first_last);
        move(&into->live_max, first_max > second_max ? first_max : second_max);
        move(&into->events, take(&first->events) + events);
    }
    atomic_fetch_add_explicit(&timeline->shift, 1, memory_order_relaxed);
    /* Release: a reader that acquires the even sequence sees all buckets merged. */
    atomic_store_explicit(&timeline->sequence, sequence + 2, memory_order_release);
}

/* The bucket of a time; NULL if other threads are still merging after many attempts. */
static struct timeline_bucket *bucket_of(struct timeline *timeline, uint64_t now) {
    uint64_t place = now >> counter_load(&timeline->shift);
    for (int tries = 0; place >= TIMELINE_BUCKETS; tries++) {
        if (tries > 64) return NULL;
        widen(timeline, now);
        place = now >> counter_load(&timeline->shift);
    }
    return &timeline->bucket[place];
}

/* Adds what the counter has gained since `noted` to a bucket, and brings `noted` up to date. */
static void pass_on(_Atomic uint64_t *counter, _Atomic uint64_t *noted, _Atomic uint64_t *to) {
    uint64_t now = counter_load(counter);
    counter_add(counter_alone(), to, now - counter_load(noted));
    counter_store(noted, now);
}

void timeline_flush(struct recording *recording, struct thread_record *thread) {
    if (counter_load(&thread->events) == counter_load(&thread->events_noted)) return;
    struct timeline_bucket *bucket = bucket_of(recording->timeline, counter_load(&thread->last_event));
    if (!bucket) return;
    pass_on(&thread->events, &thread->events_noted, &bucket->events);
    pass_on(&thread->allocated, &thread->allocated_noted, &bucket->allocated);
}

/* The last bucket in use before `place` ends with the size that the heap has now: there was no event since. */
static void end_former_bucket(struct timeline *timeline, uint64_t place, uint64_t live) {
    while (place-- > 0)
        if (counter_load(&timeline->bucket[place].events)) {
            counter_store(&timeline->bucket[place].live_last, live);
            return;
        }
}

void timeline_turn(struct recording *recording, struct thread_record *thread, uint64_t now) {
    timeline_flush(recording, thread);
    struct timeline *timeline = recording->timeline;
    uint64_t live = heap_size(recording);
    struct timeline_bucket *bucket = bucket_of(timeline, now);
    if (!bucket) return;
    uint64_t place = (uint64_t)(bucket - timeline->bucket);
    if (!counter_load(&bucket->events)) end_former_bucket(timeline, place, live);
    /* Relaxed: only this thread reads it. Atomic, since a dump copies the whole record. */
    __atomic_store_n(&thread->moment, place, __ATOMIC_RELAXED);
    counter_store(&bucket->live_last, live);
    counter_raise(counter_alone(), &bucket->live_max, heap_size_reach(recording, thread, live));
    /* The event that is about to be counted is added to the bucket at once: it shows that the bucket is in use. */
    counter_add(counter_alone(), &bucket->events, 1);
    counter_add_own(&thread->events_noted, 1);
}
