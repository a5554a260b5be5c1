#include "record/python/python_internals.h"

static void emit(struct native_stack *merged, uint64_t frame, uint64_t place) {
    merged->frames[merged->count] = frame;
    merged->places[merged->count++] = place;
}

/* Whether native frame `i` interprets the run whose place is `place`: the address lies between the stack pointers of
 * the frame and of its caller. Without a place, the code of the frame tells. */
static bool interprets(const struct native_stack *native, uint32_t i, uint64_t place) {
    if (!place) return native->frames[i] - python.evaluate < python.interpreter.evaluate_size;
    if (i + 1 == native->count) return native->places[i] <= place;
    return native->places[i] <= place && place < native->places[i + 1] && native->places[i + 1] != UINT64_MAX;
}

/* Whether the native frame that interprets the run would have come before frame `i`: it is among those that were cut
 * out of a deep stack. */
static bool is_passed(const struct native_stack *native, uint32_t i, uint64_t place) {
    return place && place < native->places[i] && native->places[i] != UINT64_MAX;
}

void python_merge_frames(
    const struct python_stack *stack, const struct native_stack *native, struct native_stack *merged) {
    uint32_t next = 0;
    merged->count = 0;
    for (uint32_t i = 0; i < native->count; i++) {
        while (next < stack->count && is_passed(native, i, stack->places[next]))
            emit(merged, stack->frames[next++], native->places[i]);
        bool here = next < stack->count && interprets(native, i, stack->places[next]);
        if (!here) {
            emit(merged, native->frames[i], native->places[i]);
            continue;
        }
        uint64_t run = stack->places[next];
        do emit(merged, stack->frames[next++], native->places[i]);
        while (run && next < stack->count && stack->places[next] == run);
    }
    uint64_t outermost = native->count ? native->places[native->count - 1] : 0;
    while (next < stack->count) emit(merged, stack->frames[next++], outermost);
}
