/* Sums over all stacks that mscope_stats asks for, kept as events come: asking costs the same however many stacks and
 * live blocks there are.
 *
 * Each thread has sums of its own (thread_record.sums), which no other thread writes, and the header has those of
 * events without a thread and of threads that have ended. What is live may be allocated by one thread and freed by
 * another: the live sums of a single thread mean nothing, and wrap around below 0.
 *
 *     Σ sums(t) over all threads t, plus header.sums  =  Σ over all stacks      while no thread is inside an event */
#ifndef MALLOSCOPE_CORE_RUNNING_SUMS_H
#define MALLOSCOPE_CORE_RUNNING_SUMS_H

#include "core/recording.h"
#include "platform/counter.h"

#include <string.h>

/* A double of which a table holds the bits. */
static inline double running_sums_real(_Atomic uint64_t *bits) {
    uint64_t word = counter_load(bits);
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* Adds to a double that is stored as its bits. */
static inline void running_sums_add_real(_Atomic uint64_t *bits, double value) {
    uint64_t old = counter_load(bits), new;
    do {
        double sum;
        memcpy(&sum, &old, sizeof sum);
        sum += value;
        memcpy(&new, &sum, sizeof new);
    } while (
        !atomic_compare_exchange_weak_explicit(bits, &old, new, memory_order_relaxed, memory_order_relaxed));
}

/* `own`: only the calling thread and its signal handlers write these sums. */
static inline void running_sums_add(_Atomic uint64_t *sum, uint64_t value, bool own) {
    if (own)
        counter_add_own(sum, value);
    else
        counter_add(false, sum, value);
}

/* The thread has ended: its sums go to the header's. For a moment, a reader may count them at both places. */
static inline void running_sums_hand_over(struct recording_header *header, struct running_sums *sums) {
    counter_add(false, &header->sums.total_bytes, counter_load(&sums->total_bytes));
    counter_add(false, &header->sums.total_objects, counter_load(&sums->total_objects));
    counter_add(false, &header->sums.live_objects, counter_load(&sums->live_objects));
    counter_add(false, &header->sums.live_samples, counter_load(&sums->live_samples));
    running_sums_add_real(&header->sums.total_variance, running_sums_real(&sums->total_variance));
    running_sums_add_real(&header->sums.live_variance, running_sums_real(&sums->live_variance));
    counter_store(&sums->total_bytes, 0);
    counter_store(&sums->total_objects, 0);
    counter_store(&sums->live_objects, 0);
    counter_store(&sums->live_samples, 0);
    counter_store(&sums->total_variance, 0);
    counter_store(&sums->live_variance, 0);
}

#endif
