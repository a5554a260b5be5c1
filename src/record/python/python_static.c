/* In the place of the other files of this folder, for programs that are linked statically: no interpreter can be
 * found in them. */
#include "record/python/python.h"

_Atomic bool python_is_present;

void python_start(bool objects) {
    (void)objects;
}

void python_end(void) {}

bool python_walk_frames(struct python_stack *stack) {
    (void)stack;
    return false;
}

uint64_t python_fingerprint(bool is_locked) {
    (void)is_locked;
    return 0;
}

void python_merge_frames(
    const struct python_stack *python, const struct native_stack *native, struct native_stack *merged) {
    (void)python;
    *merged = *native;
}

void python_fingerprint_free(void) {}

void python_note_module(const struct mapped_code *code, uint32_t number) {
    (void)code, (void)number;
}

void python_look_at_stack(const struct native_stack *native) {
    (void)native;
}
