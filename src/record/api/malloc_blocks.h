/* Questions about a block of malloc's that the program names by its address. */
#ifndef MALLOSCOPE_RECORD_API_MALLOC_BLOCKS_H
#define MALLOSCOPE_RECORD_API_MALLOC_BLOCKS_H

#ifndef MSCOPE_LINKED
#define MSCOPE_LINKED
#endif
#include "malloscope.h"
#include "record/sample/address_filter.h"
#include "record/sample/recorder_state.h"

#include <stdbool.h>

/* False: the block was certainly not sampled. `distance` is mark_distance(block). */
static inline bool malloc_blocks_may_be_sampled(const void *block, uint64_t distance) {
    /* Relaxed: the calling thread has the block's address from the thread that allocated it, and with it what
     * that thread wrote to the filter. */
    return distance || recorder.exact ||
           atomic_load_explicit(address_filter_place(block), memory_order_relaxed);
}

/* What to tell the program about a block that is not in the recording. Where every block is recorded, malloc did
 * not give out this one; elsewhere it was merely not sampled. */
static inline mscope_result malloc_blocks_not_found(void) {
    return recorder.exact ? MSCOPE_UNKNOWN : MSCOPE_OK;
}

#endif
