#define MSCOPE_LINKED
#include "record/api/block_types.h"

#include "core/events.h"
#include "core/live_table.h"
#include "core/name_table.h"
#include "core/stack_table.h"
#include "malloscope.h"
#include "platform/caller_state.h"
#include "record/api/own_heaps.h"
#include "record/intercept/export.h"
#include "record/intercept/real_allocator.h"
#include "record/sample/address_filter.h"
#include "record/sample/mark.h"
#include "record/sample/recorder.h"
#include "record/sample/recorder_state.h"

bool block_types_set(const void *block, uint32_t slot, uint32_t heap, uint32_t type, uint32_t *ret_stack) {
    struct recording *recording = &recorder.recording;
    struct live_entry *entry = live_table_at_checked(recording, slot);
    if (!entry || live_table_address(entry) != (uintptr_t)block) return false;
    struct sample sample = sample_of_entry(entry, slot, heap);
    const struct stack_record *stack = stack_table_get(recording, sample.stack);
    struct stack_key key = {.frames = arena_at(recording, stack->frames),
        .frame_count = stack->frame_count,
        .heap = heap ? heap : stack->heap, /* which tells malloc's rate */
        .type = type,
        .flags = stack->flags};
    *ret_stack = sample.stack;
    if (stack->type == type) return true;
    uint32_t typed = stack_table_intern(recording, &key);
    if (typed == STACK_DROPPED || typed == sample.stack) return true;
    events_move(recording, &sample, typed);
    /* Relaxed: a stack that stack_table_intern has published. A reader has the former or this one. */
    __atomic_store_n(&entry->stack, typed, __ATOMIC_RELAXED);
    *ret_stack = typed;
    return true;
}

/* ---- malloc's blocks ---- */

static bool may_be_sampled(const void *block, uint64_t distance) {
    return distance || recorder.exact ||
           atomic_load_explicit(address_filter_place(block), memory_order_relaxed);
}

/* MSCOPE_UNKNOWN where all blocks are recorded; elsewhere it was merely not sampled. */
static mscope_result not_found(void) {
    return recorder.exact ? MSCOPE_UNKNOWN : MSCOPE_OK;
}

static mscope_result type_block(void *block, uint32_t type) {
    uint64_t distance = mark_distance(block);
    if (!may_be_sampled(block, distance)) return MSCOPE_OK;
    struct sample sample = {.slot = LIVE_NONE};
    if (distance > DISTANCE_BOOTSTRAP)
        sample = mark_sample(block, clock_now());
    else
        sample.slot = address_index_find(&recorder.index, (uintptr_t)mark_without_tag(block));
    if (sample.slot == LIVE_NONE ||
        !block_types_set(mark_without_tag(block), sample.slot, 0, type, &sample.stack))
        return not_found();
    if (distance > DISTANCE_BOOTSTRAP) mark_set(block, distance, &sample);
    return MSCOPE_OK;
}

EXPORT mscope_result mscope_type(const void *block, struct mscope_name *type) {
    if (!type || !type->name) return MSCOPE_BAD_ARGUMENT;
    if (!block || !recorder_is_recording()) return MSCOPE_OK;
    /* Relaxed, as in scopes.c. */
    uint32_t number = __atomic_load_n(&type->number, __ATOMIC_RELAXED);
    if (number == NAME_NONE) {
        KEEP_CALLER_STATE;
        number = name_table_note(&recorder.recording, type->name);
        __atomic_store_n(&type->number, number, __ATOMIC_RELAXED);
    }
    return type_block((void *)block, number);
}

EXPORT mscope_result mscope_type_named(const void *block, const char *type) {
    struct mscope_name name = {type, NAME_NONE};
    return mscope_type(block, &name);
}

EXPORT mscope_result mscope_heap_backing(mscope_heap heap, const void *block, size_t size) {
    (void)size;
    if (!own_heaps_has(heap)) return MSCOPE_NO_HEAP;
    if (!block) return MSCOPE_BAD_ARGUMENT;
    if (!recorder_is_recording()) return MSCOPE_OK;
    uint64_t distance = mark_distance(block);
    struct forgotten forgotten;
    if (distance == DISTANCE_BOOTSTRAP || !may_be_sampled(block, distance)) return MSCOPE_OK;
    /* To be asked first: what is forgotten without being known counts as a free of something unknown. */
    if (!distance && address_index_find(&recorder.index, (uintptr_t)mark_without_tag(block)) == INDEX_NONE)
        return not_found();
    bool known = distance ? recorder_forget(block, &forgotten)
                          : recorder_forget_unmarked(mark_without_tag(block), &forgotten);
    if (!known) return not_found();
    events_withdraw(&recorder.recording, &forgotten.sample);
    live_table_give(&recorder.recording, recorder_thread, forgotten.sample.slot);
    if (distance)
        mark_set((void *)block, distance, &(struct sample){.slot = LIVE_NONE});
    else if (!recorder.exact)
        address_filter_remove(block);
    return MSCOPE_OK;
}
