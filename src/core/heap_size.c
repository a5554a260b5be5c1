#include "core/heap_size.h"

#include "core/threads.h"

/* No size that is live can become a new peak out of slack. The two words are read one after the other: who
 * changes them meanwhile is at work at the same time, and looks itself. */
static bool is_calm(struct recording_header *header) {
    return counter_load(&header->live_bytes) <= counter_load(&header->peak_bytes);
}

static bool may_have_slack(const struct thread_record *thread) {
    return thread && thread->number < SLACK_THREADS;
}

static uint64_t slack_of_all(struct recording *recording) {
    /* Acquire: the records that are counted are seen. */
    uint64_t count = atomic_load_explicit(&recording->header->threads.count, memory_order_acquire), sum = 0;
    for (uint32_t i = 0; i < count && i < SLACK_THREADS; i++)
        sum += counter_load(&threads_get(recording, i)->slack);
    return sum;
}

uint64_t heap_size(struct recording *recording) {
    uint64_t live = counter_load(&recording->header->live_bytes), slack = slack_of_all(recording);
    return live > slack ? live - slack : 0;
}

/* Adds to what all share, and gives the thread's slack back. First there, then here: in between others find
 * less live than there is, and no peak that never was. A signal handler that comes in between and changes the
 * slack has found all of it still there: then what was given back is taken again. */
static uint64_t add(struct recording_header *header, struct thread_record *thread, uint64_t bytes) {
    _Atomic uint64_t *all = &header->live_bytes;
    if (!may_have_slack(thread)) return counter_add(false, all, bytes);
    uint64_t slack = counter_load(&thread->slack), given = slack,
             live = counter_add(false, all, bytes - given);
    while (!counter_exchange(&thread->slack, &slack, 0)) {
        live = counter_add(false, all, given - slack);
        given = slack;
    }
    return live;
}

static __attribute__((noinline)) uint64_t grow_for_all(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now) {
    struct recording_header *header = recording->header;
    uint64_t live = add(header, thread, bytes);
    if (live <= counter_load(&header->peak_bytes)) return live;
    uint64_t slack = slack_of_all(recording);
    live = live > slack ? live - slack : 0;
    heap_note_peak(header, live, now, false);
    return live;
}

uint64_t heap_grow_shared(
    struct recording *recording, struct thread_record *thread, uint64_t bytes, uint64_t now) {
    struct recording_header *header = recording->header;
    if (may_have_slack(thread) && is_calm(header)) {
        uint64_t slack = counter_load(&thread->slack);
        while (slack >= bytes)
            if (counter_exchange(&thread->slack, &slack, slack - bytes))
                return counter_load(&header->live_bytes) - (slack - bytes);
    }
    return grow_for_all(recording, thread, bytes, now);
}

static uint64_t slack_most(struct recording_header *header) {
    uint64_t portion = counter_load(&header->peak_bytes) / SLACK_PORTION;
    return portion > SLACK_LEAST ? portion : SLACK_LEAST;
}

void heap_shrink_shared(struct recording *recording, struct thread_record *thread, uint64_t bytes) {
    struct recording_header *header = recording->header;
    if (may_have_slack(thread) && is_calm(header)) {
        uint64_t slack = counter_load(&thread->slack), most = slack_most(header);
        if (!counter_load(&header->has_slack)) counter_store(&header->has_slack, 1);
        while (slack + bytes <= most)
            if (counter_exchange(&thread->slack, &slack, slack + bytes)) return;
    }
    add(header, thread, -bytes);
}

void heap_give_slack(struct recording *recording, struct thread_record *thread) {
    add(recording->header, thread, 0);
}
