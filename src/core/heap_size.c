#include "core/heap_size.h"

#include "core/thread_table.h"

/* tests/models/heap_size.pml has every step of this file: change both. */

#define MEASURED_MOST 8 /* attempts to measure the live bytes, before that is left to other threads */

/* The slack word with a new slack. The count of changes in its upper bits goes up by one. */
static uint64_t changed(uint64_t word, uint64_t slack) {
    return ((word & ~SLACK_MASK) + SLACK_MASK + 1) | slack;
}

/* Two threads must not overlook a peak that only their two events together make. Thread A adds to live_bytes and
 * finds it above the peak; at the same time thread B allocates from its slack:
 *
 *     A: store is_tense = 1        B: lower its slack
 *     A: load the slack of B       B: load is_tense
 *
 * Each thread has a full barrier between its two accesses, so at least one of them sees the store of the other: A
 * measures with B's lowered slack, or B finds is_tense set and measures itself. That is why B lowers its slack by a
 * sequentially consistent exchange, though no other thread writes that word. B loads is_tense and not live_bytes,
 * because live_bytes changes often and its cache line would have to be fetched each time. */
static bool lower_slack(struct thread_record *thread, uint64_t *seen, uint64_t slack) {
    return atomic_compare_exchange_strong(&thread->slack, seen, changed(*seen, slack));
}

/* Relaxed: an event that raises the slack makes no new peak. */
static bool raise_slack(struct thread_record *thread, uint64_t *seen, uint64_t slack) {
    return counter_exchange(&thread->slack, seen, changed(*seen, slack));
}

/* Whether live_bytes is not above the peak, so that an allocation from slack cannot make a new peak. */
static bool is_calm(struct recording_header *header) {
    return !atomic_load(&header->is_tense);
}

static void note_slack(struct recording_header *header) {
    if (!counter_load(&header->has_slack)) counter_store(&header->has_slack, 1);
}

static bool may_have_slack(const struct thread_record *thread) {
    return thread && thread->number < SLACK_THREADS;
}

/* Σ slack(t). `*ret_state` is a hash of all slack words with their counts of changes: it differs if any has changed. */
static uint64_t slack_of_all(struct recording *recording, uint64_t *ret_state) {
    /* Acquire: pairs with the release in table_append_many, so the segments of the counted records are seen. */
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

/* Measures the live bytes. True if no slack changed while they were measured: *ret_size is then exact for the moment in
 * which live_bytes was loaded. False if slack changed in every attempt: *ret_size is then about right. */
static bool measure(struct recording *recording, uint64_t *ret_size) {
    for (int tries = 0;; tries++) {
        uint64_t before, after, slack = slack_of_all(recording, &before);
        /* Acquire, here and in slack_of_all: the three reads happen in this order. */
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

/* Whether live_bytes, which is stored in *ret_live, is not above the peak. Brings is_tense up to date. The thread
 * that clears is_tense looks again: between its load and its store, another thread may have raised live_bytes above
 * the peak, found is_tense still set, and so not set it. */
static bool look_at_peak(struct recording_header *header, uint64_t *ret_live) {
    for (;;) {
        *ret_live = atomic_load(&header->live_bytes);
        uint64_t is_tense = atomic_load(&header->is_tense);
        /* Signed: if a signal handler has jumped out of the middle of `add`, live_bytes may be slightly below 0. */
        bool is_above = (int64_t)*ret_live > (int64_t)counter_load(&header->peak_bytes);
        if (is_above != is_tense) atomic_store(&header->is_tense, is_above);
        if (is_above || !is_tense) return !is_above;
    }
}

/* To be called after a change that the thread has made itself: notes a new peak, if there is one. Returns
 * live_bytes, or the live bytes if live_bytes is above the peak.
 *
 * If the measurement fails, other threads kept changing their slack. A thread that lowers its slack looks at
 * is_tense afterwards, and measures itself. */
static uint64_t note_size(struct recording *recording, uint64_t now) {
    struct recording_header *header = recording->header;
    uint64_t live;
    if (look_at_peak(header, &live)) return live;
#if !defined(__x86_64__) /* on x86-64 the operations before are full barriers already (see lower_slack) */
    atomic_thread_fence(memory_order_seq_cst);
#endif
    if (measure(recording, &live)) heap_size_note_peak(header, live, now, false);
    return live;
}

/* Adds `bytes` to the heap's size and gives the thread `slack`, in two writes: live_bytes += bytes + slack − old
 * slack, and the slack word. Between the two writes, live_bytes − Σ slack(t) must not be more than is live. So a
 * slack that grows is written before live_bytes, and a slack that shrinks after it.
 *
 * A signal handler of the thread may come in between and change the slack. The old slack that counts is the one
 * that the exchange replaced in the end; the loops correct live_bytes for that. */
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

/* Slack for a thread that allocates and has none: half of the most, so that it can both allocate and free for a
 * while. 0 if live_bytes would exceed the peak by that. */
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
