/* The bootstrap heap: serves what is allocated before the program's allocator is known. The dynamic linker may
 * allocate while real_allocator.c looks the allocator up.
 *
 * Its blocks come from a small array, then from mmap, so the heap cannot run dry. They are marked (mark.h), so
 * that free and realloc know them. free does nothing with them. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_BOOTSTRAP_HEAP_H
#define MALLOSCOPE_RECORD_INTERCEPT_BOOTSTRAP_HEAP_H

#include <stddef.h>

/* A zeroed block. NULL, and errno ENOMEM: the kernel has no memory, or the alignment is above 2,048. */
__attribute__((noinline)) void *bootstrap_heap_allocate(size_t alignment, size_t size);

/* The size that was asked for. */
size_t bootstrap_heap_size(const void *block);

#endif
