/* The early heap: for what is allocated before the allocator is known (real_allocator.h). */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_BOOTSTRAP_HEAP_H
#define MALLOSCOPE_RECORD_INTERCEPT_BOOTSTRAP_HEAP_H

#include <stddef.h>

/* A zeroed block of the early heap: never given back. NULL only when the kernel has no memory. */
__attribute__((noinline)) void *bootstrap_heap_allocate(size_t alignment, size_t size);
size_t bootstrap_heap_size(const void *block);

#endif
