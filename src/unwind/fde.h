/* Where the unwind information of a pc lies: a search in the sorted table of .eh_frame_hdr. */
#ifndef MALLOSCOPE_UNWIND_FDE_H
#define MALLOSCOPE_UNWIND_FDE_H

#include "unwind/mapping.h"

enum fde_result {
    FDE_FOUND, /* the last entry that begins at or before the pc; it may end before the pc too */
    FDE_NONE,
    FDE_STALE, /* the mapping is not what it was taken for */
};

/* Gives the address of the entry (FDE) and of the first instruction it is about. */
enum fde_result fde_find(
    const struct mapping *mapping, uint64_t pc, uint64_t *ret_address, uint64_t *ret_begin);

#endif
