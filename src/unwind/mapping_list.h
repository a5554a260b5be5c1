/* Which mapping covers a pc: the executable mappings of the process, as /proc/self/maps last showed them.
 *
 * Snapshots, sorted by address. Readers search the published one and check afterwards that it still is. Who
 * finds a pc that no mapping covers reads the maps into a free snapshot and publishes that. Nobody waits for
 * anybody: a thread that is stopped while it reads the maps does not hinder the others, who have snapshots of
 * their own.
 *
 *     published ──► snapshot 1   read by everybody
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

/* Copies the mapping that covers `pc`. If there is none, the mappings are read again, unless that was done in
 * vain too often of late. `*ret_certain` says whether the answer may be kept until the generation changes. */
bool mapping_list_find(uint64_t pc, struct mapping *ret_mapping, bool *ret_certain);

/* To be called on a mapping whose content is not what the snapshot says: reads all unwind headers again. */
void mapping_list_distrust(void);

/* Closings of libraries: how many are under way, times CLOSING_UNDER_WAY, plus how many have ended and
 * unmapped something. And how many had when the published snapshot was begun. Where the two differ, a mapping
 * may be another than the snapshot says, and mapping_list_settle makes sure. */
#define CLOSING_UNDER_WAY (UINT64_C(1) << 48)
extern struct mapping_list_closings { _Atomic uint64_t count, settled; } mapping_list_closings;

static inline bool mapping_list_is_settled(void) {
    uint64_t count = atomic_load_explicit(&mapping_list_closings.count, memory_order_acquire);
    return atomic_load_explicit(&mapping_list_closings.settled, memory_order_acquire) == count;
}

void mapping_list_settle(void);

/* A number for the surroundings of an address that changes whenever a mapping comes or goes there. What was
 * derived from the mapping is good for as long as the number taken before stays. */
#define GENERATION_REGIONS 1024
extern _Atomic uint16_t mapping_list_generation[GENERATION_REGIONS];

static inline uint64_t mapping_list_generation_of(uint64_t pc) {
    return atomic_load_explicit(
        &mapping_list_generation[pc >> 16 & (GENERATION_REGIONS - 1)], memory_order_acquire);
}

#endif
