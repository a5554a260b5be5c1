/* What the recorder tells the hooks. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_HOOKS_H
#define MALLOSCOPE_RECORD_INTERCEPT_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

/* What is to be thought of a block that carries no mark. Until this is said, every one is looked up. */
enum unmarked {
    UNMARKED_LOOK_UP, /* it may have been sampled: exact mode */
    UNMARKED_FILTER,  /* it may have been sampled if the filter knows it (address_filter.h) */
    UNMARKED_IGNORE,  /* it was not sampled, unless it begins a page and the filter knows it */
};

void hooks_treat_unmarked(enum unmarked how);

/* From now on sampled blocks carry no marks. */
void hooks_stop_marking(void);

/* What malloc does, and posix_memalign, for the code at `at`. */
struct unwind_registers;
void *hooks_malloc(size_t size, const struct unwind_registers *at);
void *hooks_allocate_aligned(size_t alignment, size_t size, const struct unwind_registers *at);

/* Said once: may blocks carry marks? */
void hooks_choose_usable_size(bool marks);

#endif
