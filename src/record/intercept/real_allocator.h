/* The real allocator: the functions that the program would have called without us.
 *
 * The table of them is filled on first use. What the look-up itself allocates comes from the bootstrap heap
 * (bootstrap_heap.h). */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_REAL_ALLOCATOR_H
#define MALLOSCOPE_RECORD_INTERCEPT_REAL_ALLOCATOR_H

/* Offsets in struct real_allocator of the functions that the entry code (entry_*.S) jumps to. hooks.c checks
 * them. */
#define REAL_MALLOC         0
#define REAL_FREE           8
#define REAL_CALLOC         16
#define REAL_REALLOC        24
#define REAL_POSIX_MEMALIGN 32
#define REAL_ALIGNED_ALLOC  40
#define REAL_MEMALIGN       48
#define REAL_USABLE_SIZE    72

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>

/* Every function that the hooks forward to: return type, name, parameters. */
#define REAL_FUNCTIONS(X)                                                                                    \
    X(void *, malloc, (size_t))                                                                              \
    X(void, free, (void *))                                                                                  \
    X(void *, calloc, (size_t, size_t))                                                                      \
    X(void *, realloc, (void *, size_t))                                                                     \
    X(int, posix_memalign, (void **, size_t, size_t))                                                        \
    X(void *, aligned_alloc, (size_t, size_t))                                                               \
    X(void *, memalign, (size_t, size_t))                                                                    \
    X(void *, valloc, (size_t))                                                                              \
    X(void *, pvalloc, (size_t))                                                                             \
    X(size_t, malloc_usable_size, (void *))                                                                  \
    X(void *, reallocarray, (void *, size_t, size_t))

struct real_allocator {
#define REAL_FIELD(type, name, parameters) type(*name) parameters;
    REAL_FUNCTIONS(REAL_FIELD)
#undef REAL_FIELD
};

/* May be used once real_allocator_ready has returned true. */
extern struct real_allocator real_allocator;

/* Fills the table on first use. False: the look-up is under way, in the calling thread (it allocates) or in
 * another one. Use the bootstrap heap then. Ends the program with a message if there is no allocator: it could
 * not run at all. */
bool real_allocator_ready(void);

/* The path of the file that malloc lies in. */
const char *real_allocator_module(void);

/* Path of this library, as the kernel shows it; "" in a program that is linked statically. */
const char *real_allocator_own_path(void);

/* Whether sampled blocks may carry marks (mark.h): the whole malloc family is the C library's, and no call can reach
 * it but through ours (libc_symbols.h). */
bool real_allocator_bears_marks(void);

/* Whether this library was opened after the program's start, so that calls do not arrive by themselves
 * (got_takeover.h). */
bool real_allocator_is_late(void);

/* Whether the executable, or a library before us, has a malloc of its own: the program's allocations cannot be
 * recorded. */
bool real_allocator_is_shadowed(void);

#endif
#endif
