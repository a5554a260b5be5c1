/* An allocator whose functions call one another by their public names: posix_memalign its own memalign,
 * calloc its own malloc. Such a call arrives at the recorder, though the block is being counted already by
 * the function that the program called. What an allocator asks of itself while it serves a call is its own
 * business.
 *
 * Where the allocator's file refers to such names, its functions but malloc are called through others that
 * note from which place on the stack on the thread is inside it, and put the thread's countdown back at the
 * end. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_NESTED_CALLS_H
#define MALLOSCOPE_RECORD_INTERCEPT_NESTED_CALLS_H

#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

/* Where code lies. */
struct code_range {
    uint64_t start, end;
};

/* Said once `real_allocator` is filled: where the allocator's code is, and ours. */
void nested_calls_expect(const struct code_range *allocator, const struct code_range *ours);

extern bool nested_calls_are_possible;
bool nested_calls_is_inside(const struct unwind_registers *caller);

/* Whether this call comes from the allocator while it serves another. */
static inline bool nested_calls_is_nested(const struct unwind_registers *caller) {
    return __builtin_expect(nested_calls_are_possible, 0) && nested_calls_is_inside(caller);
}

#endif
