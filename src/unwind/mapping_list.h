/* Which mapping covers a pc: the executable mappings of the process, as /proc/self/maps last showed them.
 *
 * The list is kept as snapshots, each sorted by address. One snapshot is published. A reader searches it, and then
 * checks that it is still published. A thread that finds a pc which no mapping covers reads the maps into a free
 * snapshot and publishes that one. No thread waits for another: a thread that is stopped while it reads the maps
 * holds up nobody, since the others use snapshots of their own.
 *
 *     published ──► snapshot 1   read by all threads
 *                   snapshot 0   free
 *                   snapshot 2   being filled by thread A
 *                   snapshot 3   being filled by thread B: of A and B, the first to end publishes
 *
 * Mappings beyond MAPPINGS_MAX are not known: stacks end there and count as incomplete. */
#ifndef MALLOSCOPE_UNWIND_MAPPING_LIST_H
#define MALLOSCOPE_UNWIND_MAPPING_LIST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/mapping.h"

#define MAPPINGS_MAX 4096

/* Copies the mapping that covers `pc`. If none is known, the maps are read again, as far as the budget allows
 * (refresh_budget.h). False if no mapping covers it. `*ret_certain` says whether the answer, which may be "none",
 * can be kept until the generation changes. */
bool mapping_list_find(uint64_t pc, struct mapping *ret_mapping, bool *ret_certain);

/* To be called when the content of a mapping is not what the snapshot says. Reads the maps and all unwind headers
 * again, as far as the budget allows. */
void mapping_list_distrust(void);

/* Closings of libraries (dlclose).
 *
 *     count   = CLOSING_UNDER_WAY × (closings under way) + (closings that have ended and unmapped something)
 *     settled = how many of the latter the published snapshot is known to take into account
 *
 * If count = settled, the published snapshot is right. Otherwise a library may lie where the snapshot has another, and
 * mapping_list_settle makes sure. */
#define CLOSING_UNDER_WAY (UINT64_C(1) << 48)
extern struct mapping_list_closings { _Atomic uint64_t count, settled; } mapping_list_closings;

static inline bool mapping_list_is_settled(void) {
    uint64_t count = atomic_load_explicit(&mapping_list_closings.count, memory_order_acquire);
    return atomic_load_explicit(&mapping_list_closings.settled, memory_order_acquire) == count;
}

/* To be called before a stack walk if the list is not settled. Afterwards the snapshot is right for this walk, unless
 * other threads kept reading the maps meanwhile. */
void mapping_list_settle(void);

/* The address space is divided into regions of 64 KiB; addresses that are 64 MiB apart share a region. A region's
 * generation changes whenever a mapping comes or goes there. What was derived from a mapping is good for as long as the
 * generation is what it was before the derivation began. */
#define GENERATION_REGIONS 1024
extern _Atomic uint16_t mapping_list_generation[GENERATION_REGIONS];

/* Acquire: pairs with the release in change_generations (mapping_list.c). */
static inline uint64_t mapping_list_generation_of(uint64_t pc) {
    return atomic_load_explicit(
        &mapping_list_generation[pc >> 16 & (GENERATION_REGIONS - 1)], memory_order_acquire);
}

#endif
