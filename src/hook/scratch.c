#include "hook/scratch.h"
#include "core/pages.h"

#include <stdatomic.h>
#include <stddef.h>

#define BUFFERS 64u

static struct {
    uint64_t *memory;
    uint32_t words;
    _Atomic uint32_t taken[BUFFERS];
} state;

bool scratch_start(uint32_t words) {
    void *memory = pages_take((size_t)BUFFERS * words * sizeof(uint64_t));
    if (!memory) return false;
    state.memory = memory;
    state.words = words;
    return true;
}

/* The relaxed look spares the exchange. That acquires, and scratch_give releases: a buffer's users never
 * meet. */
uint64_t *scratch_take(uint32_t hint, uint32_t *ret_number) {
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint32_t number = (hint + i) % BUFFERS;
        if (atomic_load_explicit(&state.taken[number], memory_order_relaxed) ||
            atomic_exchange_explicit(&state.taken[number], 1, memory_order_acquire))
            continue;
        *ret_number = number;
        return state.memory + (size_t)number * state.words;
    }
    return NULL;
}

void scratch_give(uint32_t number) {
    atomic_store_explicit(&state.taken[number], 0, memory_order_release);
}

/* The threads that held the others are not in the child. Relaxed: there is one thread. */
void scratch_after_fork(void) {
    for (uint32_t i = 0; i < BUFFERS; i++) atomic_store_explicit(&state.taken[i], 0, memory_order_relaxed);
}
