#include "record/walkcache/growing_sets.h"

#include "platform/calls.h"
#include "platform/pages.h"

#include <stdatomic.h>
#include <sys/mman.h>

/* Relaxed throughout: a sum, by which nothing is ordered. */
static _Atomic size_t bytes_taken;

/* Takes `size` bytes if they are at most 1 / `share` of what is left. */
static bool take_room(size_t size, size_t share) {
    size_t taken = atomic_load_explicit(&bytes_taken, memory_order_relaxed);
    do
        if (size > (SETS_BYTES_MOST - taken) / share) return false;
    while (!atomic_compare_exchange_weak_explicit(
        &bytes_taken, &taken, taken + size, memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool growing_sets_take(size_t size) {
    return take_room(size, 1);
}

void growing_sets_give(size_t size) {
    atomic_fetch_sub_explicit(&bytes_taken, size, memory_order_relaxed);
}

size_t growing_sets_bytes(void) {
    return atomic_load_explicit(&bytes_taken, memory_order_relaxed);
}

void growing_sets_after_fork(void) {
    atomic_store_explicit(&bytes_taken, 0, memory_order_relaxed);
}

static struct growing_sets table_of(void *first, uint64_t count) {
    return (struct growing_sets){first, (count - 1) * SET_SIZE};
}

void growing_sets_start(struct growing_sets *sets, void *first) {
    *sets = table_of(first, SETS_AT_START);
}

bool growing_sets_make_larger(
    const struct growing_sets *sets, uint64_t count, struct growing_sets *ret_larger) {
    /* A thread takes at most half of what is left, so that the first ones leave some for others. */
    while (count > growing_sets_count(sets) && !take_room(count * SET_SIZE, 2)) count /= 2;
    if (count <= growing_sets_count(sets)) return false;
    void *first = pages_take(count * SET_SIZE);
    if (!first) {
        growing_sets_give(count * SET_SIZE);
        return false;
    }
    /* Nearly every look-up touches another page. With small pages most of them would miss the TLB, too. */
    call_madvise(first, count * SET_SIZE, MADV_HUGEPAGE);
    *ret_larger = table_of(first, count);
    return true;
}

/* `first` is set before `mask`: a signal handler that comes in between uses the larger table with the smaller
 * mask. It finds sets that exist, though perhaps not all that it looks for. */
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
    pages_give(sets->first, count * SET_SIZE);
    growing_sets_give(count * SET_SIZE);
}
