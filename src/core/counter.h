/* Atomic updates that cost nothing extra in a program with one thread.
 *
 * There the bus need not be locked: a single read-modify-write instruction is whole with regard to signal
 * handlers, the only other writers. libc says whether there ever was a second thread. A thread made by a bare
 * clone() is not noticed: such a program may lose counts. All are relaxed: the counters are sums that nobody
 * orders anything by. */
#ifndef MALLOSCOPE_CORE_COUNTER_H
#define MALLOSCOPE_CORE_COUNTER_H

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

/* Returns the new value. Subtract by adding the negative. */
static inline uint64_t counter_add(_Atomic uint64_t *counter, uint64_t value) {
#if defined(__x86_64__)
    if (__libc_single_threaded) {
        uint64_t old = value;
        __asm__ volatile("xaddq %0, %1" : "+r"(old), "+m"(*counter) : : "cc");
        return old + value;
    }
#endif
    return atomic_fetch_add_explicit(counter, value, memory_order_relaxed) + value;
}

/* Raises `maximum` to `value`. True if it was lower. */
static inline bool counter_raise(_Atomic uint64_t *maximum, uint64_t value) {
    uint64_t seen = counter_load(maximum);
    while (seen < value) {
        if (__libc_single_threaded) {
            counter_store(maximum, value);
            return true;
        }
        if (atomic_compare_exchange_weak_explicit(
                maximum, &seen, value, memory_order_relaxed, memory_order_relaxed))
            return true;
    }
    return false;
}

#endif
