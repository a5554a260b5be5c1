#include "record/python/python_internals.h"

static void emit(struct native_stack *merged, uint64_t frame, uint64_t place) {
    merged->frames[merged->count] = frame;
    merged->places[merged->count++] = place;
}

/* Whether a native frame is that of the C function in which something at `place` lies. */
static bool interprets(const struct native_stack *native, uint32_t i, uint64_t place) {
    if (!place) return native->frames[i] - python.evaluate < python.interpreter.evaluate_size;
    if (i + 1 == native->count) return native->places[i] <= place;
    return native->places[i] <= place && place < native->places[i + 1] && native->places[i + 1] != UINT64_MAX;
}

/* Its part of the C stack is not among the native frames: it was cut out. */
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
