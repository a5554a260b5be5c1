#include "record/sample/capture_buffers.h"
#include "platform/pages.h"
#include "platform/system.h"

#include <stdatomic.h>
#include <stddef.h>

#define BUFFERS 64u

static struct {
    uint64_t *memory;
    uint32_t words;
    _Atomic uint64_t holder[BUFFERS]; /* the thread that uses the buffer; 0: it is free */
} state;

bool capture_buffers_start(uint32_t words) {
    void *memory = pages_take((size_t)BUFFERS * words * sizeof(uint64_t));
    if (!memory) return false;
    state.memory = memory;
    state.words = words;
    return true;
}

/* A holder word: the number of the thread plus one, and below it the stack pointer at which the thread took the
 * buffer. */
#define HOLDER_SHIFT 48
#define HOLDER_SP    ((UINT64_C(1) << HOLDER_SHIFT) - 1)

/* Whether the buffer of holder `held` was abandoned by the thread of holder `ours`.
 *
 * A signal handler that interrupts a walk takes a buffer of its own. If the handler leaves by longjmp, the walk
 * that it interrupted never ends, and its buffer is never given back. That walk was deeper on the stack, at a
 * lower address, than the thread is after the jump. A walk that is merely interrupted is at a higher address than
 * the handler, if both are on the same stack. */
static bool is_abandoned(uint64_t held, uint64_t ours) {
    return held && held >> HOLDER_SHIFT == ours >> HOLDER_SHIFT && (held & HOLDER_SP) < (ours & HOLDER_SP);
}

static __attribute__((noinline, cold)) uint64_t *take_abandoned(uint64_t ours, uint32_t *ret_number) {
    if (system_on_signal_stack())
        return NULL; /* stack pointers of two stacks tell nothing about which is deeper */
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint64_t held = atomic_load_explicit(&state.holder[i], memory_order_relaxed);
        /* Acquire: as in capture_buffers_take. The exchange competes with this thread's signal handlers only,
         * because no other thread finds the holder abandoned. */
        if (!is_abandoned(held, ours) || !atomic_compare_exchange_strong_explicit(&state.holder[i], &held,
                                             ours, memory_order_acquire, memory_order_relaxed))
            continue;
        *ret_number = i;
        return state.memory + (size_t)i * state.words;
    }
    return NULL;
}

/* The relaxed load spares an exchange that would fail. The acquire of the exchange pairs with the release in
 * capture_buffers_give: what the former user wrote into the buffer comes before what the new one writes. */
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
    return take_abandoned(ours, ret_number);
}

void capture_buffers_give(uint32_t number) {
    atomic_store_explicit(&state.holder[number], 0, memory_order_release);
}

/* Relaxed: the child has one thread. */
void capture_buffers_after_fork(void) {
    for (uint32_t i = 0; i < BUFFERS; i++) atomic_store_explicit(&state.holder[i], 0, memory_order_relaxed);
}
