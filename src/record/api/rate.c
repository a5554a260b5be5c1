/* Another rate while the program runs.
 *
 * A sample's weight follows from its size and the rate that it was drawn at, and is worked out again when the
 * block is freed, and by readers. So a rate is kept for as long as there are samples of it: as one more heap
 * of malloc's, to which the stacks of its samples belong. A thread that is in the middle of an
 * interval goes on to its end, at the rate that it was drawn at: each allocation is sampled with the chance
 * that its weight assumes. */
#define MSCOPE_LINKED
#include "core/heap_table.h"
#include "malloscope.h"
#include "platform/caller_state.h"
#include "platform/counter.h"
#include "record/intercept/export.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

/* The heap of this rate, which may have been in use before. */
static uint32_t heap_of(uint64_t rate) {
    struct recording *recording = &recorder.recording;
    if (rate == recorder.rate) return 0;
    uint32_t count = atomic_load_explicit(&recording->heaps_noted, memory_order_acquire);
    for (uint32_t number = 1; number < count; number++) {
        const struct heap_record *heap = table_entry(recording, &recording->header->heaps, number);
        if (heap->kind == HEAP_OF_MALLOC && heap->rate == rate) return number;
    }
    return heap_table_note(recording, 0, rate, HEAP_OF_MALLOC);
}

EXPORT mscope_result mscope_set_rate(uint64_t rate) {
    KEEP_CALLER_STATE;
    if (!recorder_is_recording() && !recorder_begin(false)) return MSCOPE_BAD_STATE;
    if (recorder.exact) return rate == 1 ? MSCOPE_OK : MSCOPE_BAD_STATE;
    if (rate <= 1) return MSCOPE_BAD_ARGUMENT;
    uint32_t heap = heap_of(rate);
    if (heap == HEAP_NONE) return MSCOPE_FULL;
    counter_raise(false, &recorder.largest_rate, rate);
    atomic_store_explicit(&recorder.malloc_heap, heap, memory_order_release);
    return MSCOPE_OK;
}
