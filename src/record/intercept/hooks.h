/* The hooks: what the functions of the malloc family do when the entry code's fast path (entry_*.S) does not
 * apply; and what the rest of the recorder tells them. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_HOOKS_H
#define MALLOSCOPE_RECORD_INTERCEPT_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

/* How free and realloc treat a block that carries no mark. Until hooks_treat_unmarked is called, they look every
 * one up. */
enum unmarked {
    UNMARKED_LOOK_UP, /* it may have been sampled: exact mode */
    UNMARKED_FILTER,  /* it may have been sampled if the address filter says so (address_filter.h) */
    UNMARKED_IGNORE,  /* it was not sampled; only of a block that begins a page the filter is asked */
};

void hooks_treat_unmarked(enum unmarked how);

/* The cold path of malloc, and that of posix_memalign for callers that expect a pointer. `at`: the caller's
 * registers. */
struct unwind_registers;
void *hooks_malloc(size_t size, const struct unwind_registers *at);
void *hooks_allocate_aligned(size_t alignment, size_t size, const struct unwind_registers *at);

/* Called once, when the allocator is known. `marks`: blocks may carry marks, which malloc_usable_size has to look
 * for. */
void hooks_choose_usable_size(bool marks);

#endif
