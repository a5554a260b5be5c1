/* The filter in front of the live table, for sampled blocks that carry no mark.
 *
 * Where blocks are left as they are (another allocator than libc's serves the program), free would have to
 * search the address index for every block. The filter is an array of small counters, found by a hash of the
 * address: where it says 0 no sampled block has that hash. With n live samples a free is searched for in vain
 * n times in 65,536. A counter that has reached its maximum stays there. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_ADDRESS_FILTER_H
#define MALLOSCOPE_RECORD_SAMPLE_ADDRESS_FILTER_H

#define FILTER_FACTOR 0x5bd1e995 /* odd; the entry code multiplies by it too */
#define FILTER_SHIFT  16         /* of the product's lower 32 bits the upper 16 count */

#ifndef __ASSEMBLER__

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint8_t address_filter_counts[1 << 16];

static inline _Atomic uint8_t *address_filter_place(const void *block) {
    return &address_filter_counts[(uint32_t)((uintptr_t)block * FILTER_FACTOR) >> FILTER_SHIFT];
}

/* Relaxed throughout: who asks about a block got its address from who counted it, or from who got it there.
 */
static inline void address_filter_step(_Atomic uint8_t *counter, uint8_t step) {
    uint8_t seen = atomic_load_explicit(counter, memory_order_relaxed);
    while (seen != UINT8_MAX && !atomic_compare_exchange_weak_explicit(counter, &seen, (uint8_t)(seen + step),
                                    memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Before the block is given to the program, and after it was taken out of the live table. */
static inline void address_filter_add(const void *block) {
    address_filter_step(address_filter_place(block), 1);
}
static inline void address_filter_remove(const void *block) {
    address_filter_step(address_filter_place(block), UINT8_MAX);
}

#endif
#endif
