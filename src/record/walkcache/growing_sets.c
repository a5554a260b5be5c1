#include "record/walkcache/growing_sets.h"

#include "platform/caller_state.h"
#include "platform/pages.h"
#include "platform/system.h"

#include <stdatomic.h>
#include <sys/mman.h>

static _Atomic size_t room_taken;

/* At most half of what is left, so that the first ones leave some for others. */
static bool room_take(size_t size) {
    /* Relaxed: a sum that nothing is ordered by. */
    size_t taken = atomic_load_explicit(&room_taken, memory_order_relaxed);
    do
        if (size > (SETS_BYTES_MOST - taken) / 2) return false;
    while (!atomic_compare_exchange_weak_explicit(
        &room_taken, &taken, taken + size, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void room_give(size_t size) {
    /* Relaxed: as above. */
    atomic_fetch_sub_explicit(&room_taken, size, memory_order_relaxed);
}

void growing_sets_after_fork(void) {
    atomic_store_explicit(&room_taken, 0, memory_order_relaxed); /* there is one thread */
}

static struct growing_sets growing_sets_of(void *first, uint64_t count) {
    return (struct growing_sets){first, (count - 1) * SET_SIZE};
}

void growing_sets_start(struct growing_sets *sets, void *first) {
    *sets = growing_sets_of(first, SETS_AT_START);
}

bool growing_sets_make_larger(
    const struct growing_sets *sets, uint64_t count, struct growing_sets *ret_larger) {
    while (count > growing_sets_count(sets) && !room_take(count * SET_SIZE)) count /= 2;
    if (count <= growing_sets_count(sets)) return false;
    KEEP_CALLER_STATE;
    void *first = pages_take(count * SET_SIZE);
    if (!first) {
        room_give(count * SET_SIZE);
        return false;
    }
    /* Each look-up is in another page: of small ones the processor would have to look up most, too. */
    madvise(first, count * SET_SIZE, MADV_HUGEPAGE);
    *ret_larger = growing_sets_of(first, count);
    return true;
}

/* The larger one with the former mask is sound, too: whatever a set has is compared in full. */
void growing_sets_replace(struct growing_sets *sets, const struct growing_sets *larger) {
    struct growing_sets former = *sets;
    atomic_signal_fence(memory_order_seq_cst);
    sets->first = larger->first;
    atomic_signal_fence(memory_order_seq_cst);
    sets->mask = larger->mask;
    atomic_signal_fence(memory_order_seq_cst);
    growing_sets_free(&former);
}

void growing_sets_free(const struct growing_sets *sets) {
    uint64_t count = growing_sets_count(sets);
    if (count == SETS_AT_START) return;
    KEEP_CALLER_STATE;
    pages_give(sets->first, count * SET_SIZE);
    room_give(count * SET_SIZE);
}
