/* The address filter: proves, for almost every block that free is given, that it was not sampled.
 *
 * It is for sampled blocks that carry no mark (mark.h). Where the program's malloc is not the C library's, that
 * is all of them, and free would have to search the address index (core/address_index.h) for every block. The
 * filter is an array of one-byte counters. A hash of a block's address selects its counter:
 *
 *     counter = number of live sampled blocks without a mark whose addresses have this hash, up to 254
 *
 * A counter of 0 proves that the block was not sampled. With n live samples, a block that was not sampled meets a
 * counter above 0 with a probability of about n / 65,536; only then is the index searched in vain. A counter that
 * has reached 255 stays there: the number of its blocks is not known any more. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_ADDRESS_FILTER_H
#define MALLOSCOPE_RECORD_SAMPLE_ADDRESS_FILTER_H

/* The hash is bits 16 to 31 of address × FILTER_FACTOR. The entry code (entry_*.S) computes it, too. */
#define FILTER_FACTOR 0x5bd1e995 /* odd */
#define FILTER_SHIFT  16

#ifndef __ASSEMBLER__

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint8_t address_filter_counts[1 << 16];

static inline _Atomic uint8_t *address_filter_place(const void *block) {
    return &address_filter_counts[(uint32_t)((uintptr_t)block * FILTER_FACTOR) >> FILTER_SHIFT];
}

/* Adds `step` to a counter; UINT8_MAX subtracts 1, because the sum is taken modulo 256.
 *
 * All accesses are relaxed. The thread that frees a block has the address from the thread that allocated it,
 * through the program's own synchronization. That orders the increment before the free's look at the counter. */
static inline void address_filter_step(_Atomic uint8_t *counter, uint8_t step) {
    uint8_t seen = atomic_load_explicit(counter, memory_order_relaxed);
    while (seen != UINT8_MAX && !atomic_compare_exchange_weak_explicit(counter, &seen, (uint8_t)(seen + step),
                                    memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* To be called before the program gets the block. */
static inline void address_filter_add(const void *block) {
    address_filter_step(address_filter_place(block), 1);
}

/* To be called after the block was taken out of the live table. */
static inline void address_filter_remove(const void *block) {
    address_filter_step(address_filter_place(block), UINT8_MAX);
}

#endif
#endif
