/* Another sampling rate for malloc, while the program runs.
 *
 * A sample's weight follows from its size and the rate that it was drawn at. It is computed again when the block is
 * freed, and by readers of the recording. So the recording keeps every rate: as a further heap of malloc's kind, to
 * which the stacks of the samples belong. A thread finishes the interval it is in at the rate that the interval was
 * drawn at, and draws the next one at the new rate. So every allocation is sampled with the probability that its weight
 * assumes. */
#define MSCOPE_LINKED
#include "core/heap_table.h"
#include "malloscope.h"
#include "platform/counter.h"
#include "record/intercept/export.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

/* The heap that stands for this rate: 0 for the rate of the start, one that was made before, or a new one. */
static uint32_t heap_of(uint64_t rate) {
    struct recording *recording = &recorder.recording;
    if (rate == recorder.rate) return 0;
    /* Acquire: pairs with the release in table_number_noted: the records of so many heaps can be read. One that another
     * thread is still filling reads as zero, which is no HEAP_OF_MALLOC. */
    uint32_t count = atomic_load_explicit(&recording->heaps_noted, memory_order_acquire);
    for (uint32_t number = 1; number < count; number++) {
        const struct heap_record *heap = table_entry(recording, &recording->header->heaps, number);
        if (heap->kind == HEAP_OF_MALLOC && heap->rate == rate) return number;
    }
    return heap_table_note(recording, 0, rate, HEAP_OF_MALLOC);
}

EXPORT mscope_result mscope_set_rate(uint64_t rate) {
    RECORDER_WORKS;
    if (!recorder_is_ready()) return MSCOPE_BAD_STATE;
    if (recorder.exact) return rate == 1 ? MSCOPE_OK : MSCOPE_BAD_STATE;
    if (rate <= 1) return MSCOPE_BAD_ARGUMENT;
    uint32_t heap = heap_of(rate);
    if (heap == HEAP_NONE) return MSCOPE_FULL;
    counter_raise(false, &recorder.largest_rate, rate);
    /* Release: a thread that draws for this heap, by an acquire load, finds it in the recording. */
    atomic_store_explicit(&recorder.malloc_heap, heap, memory_order_release);
    return MSCOPE_OK;
}
