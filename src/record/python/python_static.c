/* A program that is linked statically has no interpreter that could be found. */
#include "record/python/python.h"

python_walk *_Atomic hook_python_walk;
python_sign *hook_python_sign;
python_merge *hook_python_merge;

void python_fingerprint_free(void) {}

void python_start(bool objects) {
    (void)objects;
}

void python_end(void) {}

void python_note_module(const struct mapped_code *code, uint32_t number) {
    (void)code, (void)number;
}

void python_look_at_stack(const struct native_stack *native) {
    (void)native;
}
