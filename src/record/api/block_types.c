#define MSCOPE_LINKED
#include "record/api/block_types.h"

#include "core/events.h"
#include "core/live_table.h"
#include "core/name_table.h"
#include "core/stack_table.h"
#include "malloscope.h"
#include "record/api/malloc_blocks.h"
#include "record/intercept/export.h"
#include "record/sample/mark.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"
#include "record/sample/work.h"

bool block_types_set(const void *block, uint32_t slot, uint32_t heap, uint32_t type, uint32_t *ret_stack) {
    struct recording *recording = &recorder.recording;
    struct live_entry *entry = live_table_at_checked(recording, slot);
    if (!entry || live_table_address(entry) != (uintptr_t)block) return false;
    struct sample sample = sample_of_entry(entry, slot, heap);
    const struct stack_record *stack = stack_table_get(recording, sample.stack);
    struct stack_key key = {.frames = arena_at(recording, stack->frames),
        .frame_count = stack->frame_count,
        /* Of malloc's blocks: 0, or a heap that stands for another rate (rate.c). */
        .heap = heap ? heap : stack->heap,
        .type = type,
        .flags = stack->flags};
    *ret_stack = sample.stack;
    if (stack->type == type) return true;
    uint32_t typed = stack_table_intern(recording, &key);
    if (typed == STACK_DROPPED || typed == sample.stack) return true;
    events_move(recording, &sample, typed);
    /* Relaxed: stack_table_intern has published the record. A reader finds the former stack or the new one, and
     * either is a valid number. */
    __atomic_store_n(&entry->stack, typed, __ATOMIC_RELAXED);
    *ret_stack = typed;
    return true;
}

/* ---- malloc's blocks ---- */

static mscope_result type_block(void *block, uint32_t type) {
    uint64_t distance = mark_distance(block);
    if (!malloc_blocks_may_be_sampled(block, distance)) return MSCOPE_OK;
    struct sample sample = {.slot = LIVE_NONE};
    if (distance > DISTANCE_BOOTSTRAP)
        sample = mark_sample(block, clock_now());
    else
        sample.slot = address_index_find(&recorder.index, (uintptr_t)mark_without_tag(block));
    if (sample.slot == LIVE_NONE ||
        !block_types_set(mark_without_tag(block), sample.slot, 0, type, &sample.stack))
        return malloc_blocks_not_found();
    if (distance > DISTANCE_BOOTSTRAP) mark_set(block, distance, &sample);
    return MSCOPE_OK;
}

EXPORT mscope_result mscope_type(const void *block, struct mscope_name *type) {
    if (!type || !type->name) return MSCOPE_BAD_ARGUMENT;
    RECORDER_WORKS;
    if (!block || !recorder_is_ready()) return MSCOPE_OK;
    /* Relaxed, here and in the store: name_table_note has published the name, and gives all threads one number
     * for it. */
    uint32_t number = __atomic_load_n(&type->number, __ATOMIC_RELAXED);
    if (number == NAME_NONE) {
        number = name_table_note(&recorder.recording, type->name);
        __atomic_store_n(&type->number, number, __ATOMIC_RELAXED);
    }
    return type_block((void *)block, number);
}

EXPORT mscope_result mscope_type_named(const void *block, const char *type) {
    struct mscope_name name = {type, NAME_NONE};
    return mscope_type(block, &name);
}
