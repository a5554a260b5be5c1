/* A block of malloc's in which one of the program's own heaps keeps its objects: the objects are recorded, so the
 * block must not be, or its bytes would count twice. */
#define MSCOPE_LINKED
#include "core/events.h"
#include "core/live_table.h"
#include "malloscope.h"
#include "record/api/malloc_blocks.h"
#include "record/api/own_heaps.h"
#include "record/intercept/export.h"
#include "record/sample/address_filter.h"
#include "record/sample/mark.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

EXPORT mscope_result mscope_heap_backing(mscope_heap heap, const void *block, size_t size) {
    (void)size;
    if (!own_heaps_has(heap)) return MSCOPE_NO_HEAP;
    if (!block) return MSCOPE_BAD_ARGUMENT;
    RECORDER_WORKS;
    if (!recorder_is_ready()) return MSCOPE_OK;
    uint64_t distance = mark_distance(block);
    struct forgotten forgotten;
    if (distance == DISTANCE_BOOTSTRAP || !malloc_blocks_may_be_sampled(block, distance)) return MSCOPE_OK;
    /* Asked first, because recorder_forget_unmarked counts a block that it does not find as an unknown free. */
    if (!distance && address_index_find(&recorder.index, (uintptr_t)mark_without_tag(block)) == INDEX_NONE)
        return malloc_blocks_not_found();
    bool known = distance ? recorder_forget(block, &forgotten)
                          : recorder_forget_unmarked(mark_without_tag(block), &forgotten);
    if (!known) return malloc_blocks_not_found();
    events_withdraw(&recorder.recording, &forgotten.sample);
    live_table_give(&recorder.recording, recorder_thread, forgotten.sample.slot);
    /* The mark stays, because the block begins behind it and free() needs its distance; it names no slot. */
    if (distance)
        mark_set((void *)block, distance, &(struct sample){.slot = LIVE_NONE});
    else if (!recorder.exact)
        address_filter_remove(block);
    return MSCOPE_OK;
}
