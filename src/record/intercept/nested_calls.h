/* Nested calls: some allocators' functions call one another by their public names. posix_memalign calls memalign,
 * calloc calls malloc. The dynamic linker binds such a call to our function of that name. The block would be
 * counted twice: for the function that the program called, and for the one that the allocator called.
 *
 *     program ─► our calloc ─► enter_calloc ─► allocator's calloc ─► our malloc ─► allocator's malloc
 *                                   │                                    └ nested: not recorded
 *                                   └ notes where its frame is; restores the thread's countdown at the end,
 *                                     which the entry code has charged for the nested call
 *
 * Only an allocator whose file refers to such names can do this. For such an allocator, `real_allocator`
 * (real_allocator.h) holds the enter_* functions in place of the allocator's own. A call that arrives while the
 * thread is inside one of them, and that comes from the allocator's code, is nested. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_NESTED_CALLS_H
#define MALLOSCOPE_RECORD_INTERCEPT_NESTED_CALLS_H

#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

/* The addresses of a module's code. */
struct code_range {
    uint64_t start, end;
};

/* Called once, when `real_allocator` is filled: `allocator` is where the allocator's code lies, `ours` where this
 * library's does. */
void nested_calls_expect(const struct code_range *allocator, const struct code_range *ours);

extern bool nested_calls_are_possible;
bool nested_calls_is_inside(const struct unwind_registers *caller);

/* Whether this call comes from the allocator while it serves another call of the thread. */
static inline bool nested_calls_is_nested(const struct unwind_registers *caller) {
    return __builtin_expect(nested_calls_are_possible, 0) && nested_calls_is_inside(caller);
}

#endif
