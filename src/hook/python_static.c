/* A program that is linked statically has no interpreter that could be found. */
#include "hook/python.h"

uint64_t (*hook_python_walk)(struct python_stack *stack);
uint32_t (*hook_python_merge)(
    const struct python_stack *python, const struct native_stack *native, struct native_stack *merged);

void python_start(bool objects) {
    (void)objects;
}

void python_end(void) {}
