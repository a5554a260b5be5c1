#include "core/heap_size.h"

#include "core/thread_table.h"

/* tests/models/heap_size.pml has every step of this: change both. */

#define MEASURED_MOST 8 /* times, before it is left to others */

static uint64_t changed(uint64_t word, uint64_t slack) {
    return ((word & ~SLACK_MASK) + SLACK_MASK + 1) | slack;
}

/* Two threads at the same time must not overlook a peak that only both together make: one adds to live_bytes
 * and finds that it is above the peak, the other lowers its slack. The one says that the times are tense, and
 * then looks at the slack; the other looks whether they are after it has lowered it. Each step is a full
 * barrier, so one of them sees both. That is why slack is lowered so, though nobody else writes it. To look
 * at live_bytes itself would cost more: it changes often. */
static bool lower_slack(struct thread_record *thread, uint64_t *seen, uint64_t slack) {
    return atomic_compare_exchange_strong(&thread->slack, seen, changed(*seen, slack));
}

/* No peak can come of this. */
static bool raise_slack(struct thread_record *thread, uint64_t *seen, uint64_t slack) {
    return counter_exchange(&thread->slack, seen, changed(*seen, slack));
}

/* No size that is live can become a new peak out of slack. */
static bool is_calm(struct recording_header *header) {
    return !atomic_load(&header->is_tense);
}

static void note_slack(struct recording_header *header) {
    if (!counter_load(&header->has_slack)) counter_store(&header->has_slack, 1);
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
        uint64_t word = atomic_load_explicit(&thread_table_get(recording, i)->slack, memory_order_acquire);
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
        *ret_size = (int64_t)(live - slack) > 0 ? live - slack : 0;
        if (before == after) return true;
        if (tries == MEASURED_MOST) return false;
    }
}

uint64_t heap_size(struct recording *recording) {
    uint64_t size;
    measure(recording, &size);
    return size;
}

/* Whether live_bytes, which is returned, is not above the peak. Who finds that it is no more says so, and
 * looks again: one who has raised it meanwhile may have found the times still tense, and said nothing. */
static bool look_at_peak(struct recording_header *header, uint64_t *ret_live) {
    for (;;) {
        *ret_live = atomic_load(&header->live_bytes);
        uint64_t is_tense = atomic_load(&header->is_tense);
        /* Signed: after a jump out of a handler in the middle of `add` it may be a little less than nothing.
         */
        bool is_above = (int64_t)*ret_live > (int64_t)counter_load(&header->peak_bytes);
        if (is_above != is_tense) atomic_store(&header->is_tense, is_above);
        if (is_above || !is_tense) return !is_above;
    }
}

/* After a change of one's own. Who could not measure was disturbed by one who looks afterwards. */
static uint64_t note_size(struct recording *recording, uint64_t now) {
    struct recording_header *header = recording->header;
    uint64_t live;
    if (look_at_peak(header, &live)) return live;
#if !defined(__x86_64__) /* where every such operation is a full barrier */
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (measure(recording, &live)) heap_size_note_peak(header, live, now, false);
    return live;
}

/* Adds to what all share, and lets the thread have `slack`: what it has less is added first there, then taken
 * here; what it has more first here, so that others find less live in between, and not more. A signal handler
 * may come in between and change the slack: what counts is that from which it was changed in the end. */
static void add(
    struct recording_header *header, struct thread_record *thread, uint64_t bytes, uint64_t slack) {
    _Atomic uint64_t *all = &header->live_bytes;
    uint64_t word = may_have_slack(thread) ? counter_load(&thread->slack) : 0, given = word & SLACK_MASK;
    while (given < slack) {
        if (raise_slack(thread, &word, slack)) {
            atomic_fetch_add(all, bytes + slack - given);
            return;
        }
        given = word & SLACK_MASK;
    }
    atomic_fetch_add(all, bytes + slack - given);
    while ((word & SLACK_MASK) != slack && !lower_slack(thread, &word, slack)) {
        atomic_fetch_add(all, given - (word & SLACK_MASK));
        given = word & SLACK_MASK;
    }
}

static uint64_t slack_most(struct recording_header *header) {
    uint64_t portion = counter_load(&header->peak_bytes) / SLACK_PORTION;
    if (portion > SLACK_MASK / 2) portion = SLACK_MASK / 2;
    return portion > SLACK_LEAST ? portion : SLACK_LEAST;
}

/* Half of what it may have, so that it can both allocate and free for a while; none if that might look like a
 * new peak. */
static uint64_t slack_in_advance(struct recording_header *header, uint64_t bytes) {
    uint64_t wanted = slack_most(header) / 2;
    return counter_load(&header->live_bytes) + bytes + wanted <= counter_load(&header->peak_bytes) ? wanted
                                                                                                   : 0;
}

uint64_t heap_size_grow_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now) {
    struct recording_header *header = recording->header;
    uint64_t in_advance = 0;
    if (may_have_slack(thread) && is_calm(header)) {
        uint64_t word = counter_load(&thread->slack), slack;
        while ((slack = word & SLACK_MASK) >= bytes)
            if (lower_slack(thread, &word, slack - bytes))
                return is_calm(header) ? 0 : note_size(recording, now);
        in_advance = slack_in_advance(header, bytes);
        if (in_advance) note_slack(header);
    }
    add(header, thread, bytes, in_advance);
    return note_size(recording, now);
}

void heap_size_shrink_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now) {
    struct recording_header *header = recording->header;
    uint64_t kept = 0;
    if (may_have_slack(thread) && is_calm(header)) {
        uint64_t word = counter_load(&thread->slack), most = slack_most(header), slack;
        note_slack(header);
        while ((slack = word & SLACK_MASK) + bytes <= most)
            if (raise_slack(thread, &word, slack + bytes)) return;
        if (slack > most / 2) kept = most / 2;
    }
    add(header, thread, -bytes, kept);
    note_size(recording, now);
}

uint64_t heap_size_reach(struct recording *recording, struct thread_record *thread, uint64_t live) {
    uint64_t peak = counter_load(&recording->header->peak_bytes);
    uint64_t reach = live + (counter_load(&thread->slack) & SLACK_MASK);
    return reach < peak ? reach : live > peak ? live : peak;
}

void heap_size_change(struct recording *recording, uint64_t bytes, uint64_t now) {
    add(recording->header, NULL, bytes, 0);
    note_size(recording, now);
}

void heap_size_give_slack(struct recording *recording, struct thread_record *thread, uint64_t now) {
    add(recording->header, thread, 0, 0);
    note_size(recording, now);
}
