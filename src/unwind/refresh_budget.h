/* How often the memory map may be read again in vain.
 *
 * A stack walk that comes to an address which no known mapping covers reads the maps again: a library may have been
 * loaded. On a damaged stack, or in a program that jumps to nowhere, every walk would do so. A budget allows
 * BUDGET_MOST reads in a row that find nothing new, and one more for each BUDGET_PERIOD milliseconds that pass.
 *
 * All accesses are relaxed: two threads at the same time may spend one read as one, or forgive it twice. */
#ifndef MALLOSCOPE_UNWIND_REFRESH_BUDGET_H
#define MALLOSCOPE_UNWIND_REFRESH_BUDGET_H

#include "platform/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BUDGET_MOST   32
#define BUDGET_PERIOD 50 /* ms */

/* All zero is a full budget. */
struct refresh_budget {
    _Atomic uint64_t used;  /* reads in vain, less those that were forgiven */
    _Atomic uint64_t since; /* ms: the time up to which reads have been forgiven */
};

/* Spends one read. False if the budget is used up. */
static inline bool refresh_budget_take(struct refresh_budget *budget) {
    uint64_t now = clock_kernel(CLOCK_MONOTONIC_COARSE) / 1000000;
    uint64_t since = atomic_load_explicit(&budget->since, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    uint64_t forgiven = now > since ? (now - since) / BUDGET_PERIOD : 0;
    if (forgiven) {
        used -= forgiven < used ? forgiven : used;
        atomic_store_explicit(&budget->since, now, memory_order_relaxed);
    }
    bool allowed = used < BUDGET_MOST;
    atomic_store_explicit(&budget->used, used + allowed, memory_order_relaxed);
    return allowed;
}

/* The read was not in vain: the budget is full again. */
static inline void refresh_budget_refill(struct refresh_budget *budget) {
    atomic_store_explicit(&budget->used, 0, memory_order_relaxed);
}

#endif
