#include "record/sample/capture_buffers.h"
#include "platform/pages.h"
#include "platform/system.h"

#include <stdatomic.h>
#include <stddef.h>

#define BUFFERS 64u

static struct {
    uint64_t *memory;
    uint32_t words;
    _Atomic uint64_t holder[BUFFERS]; /* 0: free */
} state;

bool capture_buffers_start(uint32_t words) {
    void *memory = pages_take((size_t)BUFFERS * words * sizeof(uint64_t));
    if (!memory) return false;
    state.memory = memory;
    state.words = words;
    return true;
}

#define HOLDER_SHIFT 48
#define HOLDER_SP    ((UINT64_C(1) << HOLDER_SHIFT) - 1)

/* A thread has one for a walk, and its handlers others; who jumps out of a handler may leave a walk behind
 * that was never ended. That one began further down the stack than the thread is now, unless this is a
 * handler on a stack of its own. */
static bool is_left(uint64_t held, uint64_t ours) {
    return held && held >> HOLDER_SHIFT == ours >> HOLDER_SHIFT && (held & HOLDER_SP) < (ours & HOLDER_SP);
}

static __attribute__((noinline, cold)) uint64_t *take_left(uint64_t ours, uint32_t *ret_number) {
    if (system_on_signal_stack()) return NULL;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint64_t held = atomic_load_explicit(&state.holder[i], memory_order_relaxed);
        /* Acquire: as below. Another thread's is not touched, and ours nobody else takes. */
        if (!is_left(held, ours) || !atomic_compare_exchange_strong_explicit(&state.holder[i], &held, ours,
                                        memory_order_acquire, memory_order_relaxed))
            continue;
        *ret_number = i;
        return state.memory + (size_t)i * state.words;
    }
    return NULL;
}

/* The relaxed look spares the exchange. That acquires, and capture_buffers_give releases: a buffer's users never
 * meet. */
uint64_t *capture_buffers_take(uint32_t thread, uint64_t sp, uint32_t *ret_number) {
    uint64_t ours = (uint64_t)(thread + 1) << HOLDER_SHIFT | (sp & HOLDER_SP);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint32_t number = (thread + i) % BUFFERS;
        uint64_t nobody = 0;
        if (atomic_load_explicit(&state.holder[number], memory_order_relaxed) ||
            !atomic_compare_exchange_strong_explicit(
                &state.holder[number], &nobody, ours, memory_order_acquire, memory_order_relaxed))
            continue;
        *ret_number = number;
        return state.memory + (size_t)number * state.words;
    }
    return take_left(ours, ret_number);
}

void capture_buffers_give(uint32_t number) {
    atomic_store_explicit(&state.holder[number], 0, memory_order_release);
}

/* The threads that held the others are not in the child. Relaxed: there is one thread. */
void capture_buffers_after_fork(void) {
    for (uint32_t i = 0; i < BUFFERS; i++) atomic_store_explicit(&state.holder[i], 0, memory_order_relaxed);
}
