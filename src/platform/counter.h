/* Atomic updates that cost nothing extra in a program with one thread.
 *
 * There (`alone`) the bus need not be locked: a single read-modify-write instruction is whole with regard to
 * signal handlers, the only other writers. libc says whether there ever was a second thread. A thread made by
 * a bare clone() is not noticed: such a program may lose counts. All are relaxed: the counters are sums that
 * nobody orders anything by. */
#ifndef MALLOSCOPE_PLATFORM_COUNTER_H
#define MALLOSCOPE_PLATFORM_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

static inline uint64_t counter_load(_Atomic uint64_t *counter) {
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void counter_store(_Atomic uint64_t *counter, uint64_t value) {
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* To be asked once for an event. */
static inline bool counter_alone(void) {
    return __libc_single_threaded;
}

/* Subtract by adding the negative. */
static inline void counter_add(bool alone, _Atomic uint64_t *counter, uint64_t value) {
#if defined(__x86_64__)
    if (alone) {
        __asm__ volatile("addq %1, %0" : "+m"(*counter) : "re"(value) : "cc");
        return;
    }
#endif
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

/* The same. Returns the new value. */
static inline uint64_t counter_sum(bool alone, _Atomic uint64_t *counter, uint64_t value) {
    if (!alone) return atomic_fetch_add_explicit(counter, value, memory_order_relaxed) + value;
    counter_add(true, counter, value);
    return counter_load(counter);
}

/* Compare and swap on a word that only one thread and its signal handlers write. */
static inline bool counter_exchange(_Atomic uint64_t *word, uint64_t *seen, uint64_t value) {
#if defined(__x86_64__)
    bool same;
    __asm__ volatile("cmpxchgq %3, %1" : "=@cce"(same), "+m"(*word), "+a"(*seen) : "r"(value) : "memory");
    return same;
#else
    return atomic_compare_exchange_weak_explicit(
        word, seen, value, memory_order_relaxed, memory_order_relaxed);
#endif
}

/* For a counter that only one thread and its signal handlers write. */
static inline void counter_add_own(_Atomic uint64_t *counter, uint64_t value) {
#if defined(__x86_64__)
    counter_add(true, counter, value);
#else
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
#endif
}

/* Raises `maximum` to `value`. True if it was lower. */
static inline bool counter_raise(bool alone, _Atomic uint64_t *maximum, uint64_t value) {
    uint64_t seen = counter_load(maximum);
    while (seen < value)
        if (alone ? counter_exchange(maximum, &seen, value)
                  : atomic_compare_exchange_weak_explicit(
                        maximum, &seen, value, memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

#endif
