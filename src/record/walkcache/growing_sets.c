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
        if (size > (SETS_ROOM - taken) / 2) return false;
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

static struct sets growing_sets_of(void *first, uint64_t count) {
    return (struct sets){first, (count - 1) * SETS_LINE};
}

void growing_sets_start(struct sets *sets, void *first) {
    *sets = growing_sets_of(first, SETS_FIRST);
}

bool growing_sets_larger(const struct sets *sets, uint64_t count, struct sets *ret_larger) {
    while (count > growing_sets_count(sets) && !room_take(count * SETS_LINE)) count /= 2;
    if (count <= growing_sets_count(sets)) return false;
    KEEP_CALLER_STATE;
    void *first = pages_take(count * SETS_LINE);
    if (!first) {
        room_give(count * SETS_LINE);
        return false;
    }
    /* Each look-up is in another page: of small ones the processor would have to look up most, too. */
    madvise(first, count * SETS_LINE, MADV_HUGEPAGE);
    *ret_larger = growing_sets_of(first, count);
    return true;
}

/* The larger one with the former mask is sound, too: whatever a set has is compared in full. */
void growing_sets_replace(struct sets *sets, const struct sets *larger) {
    struct sets former = *sets;
    atomic_signal_fence(memory_order_seq_cst);
    sets->first = larger->first;
    atomic_signal_fence(memory_order_seq_cst);
    sets->mask = larger->mask;
    atomic_signal_fence(memory_order_seq_cst);
    growing_sets_give(&former);
}

void growing_sets_give(const struct sets *sets) {
    uint64_t count = growing_sets_count(sets);
    if (count == SETS_FIRST) return;
    KEEP_CALLER_STATE;
    pages_give(sets->first, count * SETS_LINE);
    room_give(count * SETS_LINE);
}
