#include "core/timeline.h"

#include "core/counter.h"

#define FIRST_SHIFT 20 /* the first buckets are a millisecond wide: half a second in all */

bool timeline_start(struct recording *recording) {
    uint64_t offset = arena_allocate(recording, sizeof(struct timeline), 64);
    if (!offset) return false;
    struct timeline *timeline = recording_at(recording, offset);
    atomic_store_explicit(&timeline->shift, FIRST_SHIFT, memory_order_relaxed);
    recording->header->timeline = offset;
    return true;
}

static void move(_Atomic uint64_t *to, uint64_t value) {
    atomic_store_explicit(to, value, memory_order_relaxed);
}
static uint64_t take(_Atomic uint64_t *from) {
    return atomic_exchange_explicit(from, 0, memory_order_relaxed);
}

/* Merges neighbours. One thread does it; the others lose their point of that moment rather than wait. */
static void widen(struct timeline *timeline, uint64_t now) {
    uint64_t sequence = atomic_load_explicit(&timeline->sequence, memory_order_acquire);
    if ((sequence & 1) || !atomic_compare_exchange_strong_explicit(&timeline->sequence, &sequence,
                              sequence + 1, memory_order_acq_rel, memory_order_relaxed))
        return;
    if (now >> atomic_load_explicit(&timeline->shift, memory_order_relaxed) < TIMELINE_BUCKETS) {
        atomic_store_explicit(&timeline->sequence, sequence, memory_order_release); /* another has done it */
        return;
    }
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
    atomic_store_explicit(&timeline->sequence, sequence + 2, memory_order_release);
}

void timeline_note(struct recording *recording, uint64_t now, uint64_t live, uint64_t allocated) {
    struct timeline *timeline = recording_at(recording, recording->header->timeline);
    uint64_t place = now >> atomic_load_explicit(&timeline->shift, memory_order_relaxed);
    for (int tries = 0; place >= TIMELINE_BUCKETS; tries++) {
        if (tries > 64) return;
        widen(timeline, now);
        place = now >> atomic_load_explicit(&timeline->shift, memory_order_relaxed);
    }
    struct timeline_bucket *bucket = &timeline->bucket[place];
    counter_store(&bucket->live_last, live);
    counter_raise(&bucket->live_max, live);
    counter_add(&bucket->events, 1);
    if (allocated) counter_add(&bucket->allocated, allocated);
}
