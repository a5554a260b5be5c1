#include "core/heap_size.h"

#include "core/threads.h"

#define MEASURED_MOST 8 /* times, before it is left to others */

static uint64_t changed(uint64_t word, uint64_t slack) {
    return ((word & ~SLACK_MASK) + SLACK_MASK + 1) | slack;
}

/* Two threads at the same time must not overlook a peak that only both together make. Each changes its word,
 * live_bytes or its slack, by an operation that is a full barrier, and looks at the other's afterwards: one
 * of them sees both. That is why slack is lowered so, though nobody else writes it. */
static bool lower_slack(struct thread_record *thread, uint64_t *seen, uint64_t slack) {
    return atomic_compare_exchange_strong(&thread->slack, seen, changed(*seen, slack));
}

/* No peak can come of this. */
static bool raise_slack(struct thread_record *thread, uint64_t *seen, uint64_t slack) {
    return counter_exchange(&thread->slack, seen, changed(*seen, slack));
}

/* No size that is live can become a new peak out of slack. */
static bool is_calm(struct recording_header *header) {
    return counter_load(&header->live_bytes) <= counter_load(&header->peak_bytes);
}

static bool may_have_slack(const struct thread_record *thread) {
    return thread && thread->number < SLACK_THREADS;
}

/* Their sum; `*ret_state` differs if any has changed. */
static uint64_t slack_of_all(struct recording *recording, uint64_t *ret_state) {
    /* Acquire: the records that are counted are seen. */
    uint64_t count = atomic_load_explicit(&recording->header->threads.count, memory_order_acquire), sum = 0;
    uint64_t state = count;
    for (uint32_t i = 0; i < count && i < SLACK_THREADS; i++) {
        uint64_t word = atomic_load_explicit(&threads_get(recording, i)->slack, memory_order_acquire);
        sum += word & SLACK_MASK;
        state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        state ^= state >> 32;
    }
    *ret_state = state;
    return sum;
}

/* The truth of one moment: that in which live_bytes was read, if no slack has changed around it. False if one
 * did, again and again; then the size is about right. */
static bool measure(struct recording *recording, uint64_t *ret_size) {
    for (int tries = 0;; tries++) {
        uint64_t before, after, slack = slack_of_all(recording, &before);
        /* Acquire: the sum that follows is read after it; the loads of the sum before likewise. */
        uint64_t live = atomic_load_explicit(&recording->header->live_bytes, memory_order_acquire);
        slack_of_all(recording, &after);
        *ret_size = live > slack ? live - slack : 0;
        if (before == after) return true;
        if (tries == MEASURED_MOST) return false;
    }
}

uint64_t heap_size(struct recording *recording) {
    uint64_t size;
    measure(recording, &size);
    return size;
}

/* After a change of one's own. Who could not measure was disturbed by one who looks afterwards. */
static uint64_t note_size(struct recording *recording, uint64_t now) {
    struct recording_header *header = recording->header;
    uint64_t live;
#if !defined(__x86_64__) /* where every such operation is a full barrier */
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (is_calm(header)) return counter_load(&header->live_bytes);
    if (measure(recording, &live)) heap_note_peak(header, live, now, false);
    return live;
}

/* Adds to what all share, and gives the thread's slack back: first there, then here, so that others find less
 * live in between, and not more. A signal handler that comes in between and changes the slack has found all
 * of it still there: then what was given back is taken again. */
static void add(struct recording_header *header, struct thread_record *thread, uint64_t bytes) {
    _Atomic uint64_t *all = &header->live_bytes;
    uint64_t word = may_have_slack(thread) ? counter_load(&thread->slack) : 0, given = word & SLACK_MASK;
    atomic_fetch_add(all, bytes - given);
    while ((word & SLACK_MASK) && !lower_slack(thread, &word, 0)) {
        atomic_fetch_add(all, given - (word & SLACK_MASK));
        given = word & SLACK_MASK;
    }
}

uint64_t heap_grow_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now) {
    struct recording_header *header = recording->header;
    if (may_have_slack(thread) && is_calm(header)) {
        uint64_t word = counter_load(&thread->slack), slack;
        while ((slack = word & SLACK_MASK) >= bytes)
            if (lower_slack(thread, &word, slack - bytes)) {
                uint64_t live = note_size(recording, now);
                return live > slack - bytes ? live - (slack - bytes) : 0;
            }
    }
    add(header, thread, bytes);
    return note_size(recording, now);
}

static uint64_t slack_most(struct recording_header *header) {
    uint64_t portion = counter_load(&header->peak_bytes) / SLACK_PORTION;
    if (portion > SLACK_MASK / 2) portion = SLACK_MASK / 2;
    return portion > SLACK_LEAST ? portion : SLACK_LEAST;
}

void heap_shrink_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now) {
    struct recording_header *header = recording->header;
    if (may_have_slack(thread) && is_calm(header)) {
        uint64_t word = counter_load(&thread->slack), most = slack_most(header), slack;
        if (!counter_load(&header->has_slack)) counter_store(&header->has_slack, 1);
        while ((slack = word & SLACK_MASK) + bytes <= most)
            if (raise_slack(thread, &word, slack + bytes)) return;
    }
    add(header, thread, -bytes);
    note_size(recording, now);
}

void heap_give_slack(struct recording *recording, struct thread_record *thread, uint64_t now) {
    add(recording->header, thread, 0);
    note_size(recording, now);
}
