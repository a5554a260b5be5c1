#include "record/life/empty.h"

#include "core/recording_empty.h"
#include "core/stack_table.h"
#include "record/sample/recorder_state.h"

bool empty_may_go(void) {
    if (recorder.is_root && !recorder.is_child) return false;
    struct recording *recording = &recorder.recording;
    if (!recording_may_be_empty(recording->header)) return false;
    uint64_t unrecorded = recording->header->unrecorded;
    if (unrecorded && recording_names_unrecorded(arena_at(recording, unrecorded))) return false;
    /* Acquire: pairs with the release in table_append_many, so the segments of the counted records are seen. */
    uint64_t threads = atomic_load_explicit(&recording->header->threads.count, memory_order_acquire);
    for (uint32_t i = 0; i < threads; i++)
        if (recording_thread_has_events(thread_table_get(recording, i))) return false;
    uint64_t stacks = atomic_load_explicit(&recording->header->stacks.count, memory_order_acquire);
    for (uint32_t i = 0; i < stacks; i++)
        if (recording_stack_has_frees(stack_table_get(recording, i))) return false;
    return true;
}
