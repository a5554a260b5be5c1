/* Where the unwind information of a pc lies: a search in the sorted table of .eh_frame_hdr. An entry of .eh_frame
 * is called a frame description entry (FDE). */
#ifndef MALLOSCOPE_UNWIND_FDE_H
#define MALLOSCOPE_UNWIND_FDE_H

#include "unwind/mapping.h"

enum fde_result {
    FDE_FOUND, /* the last FDE that begins at or before the pc; its code may also end before the pc */
    FDE_NONE,
    FDE_STALE, /* the content of the mapping is not what it was taken for */
};

/* Gives the address of the FDE, and of the first instruction that it is about. */
enum fde_result fde_find(
    const struct mapping *mapping, uint64_t pc, uint64_t *ret_address, uint64_t *ret_begin);

#endif
