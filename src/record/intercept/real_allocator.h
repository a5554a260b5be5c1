/* The allocator behind the hooks: the functions that the program would have called without us.
 *
 * The table is filled on first use. What the look-up itself allocates comes from the early heap, which takes
 * its memory from the kernel and cannot run dry; its blocks are marked, so that free and realloc know them.
 */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_REAL_ALLOCATOR_H
#define MALLOSCOPE_RECORD_INTERCEPT_REAL_ALLOCATOR_H

/* Where the entry code finds those it jumps to. */
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

/* The entry code (entry_*.S) jumps through most of them. */
struct real_allocator {
#define REAL_FIELD(type, name, parameters) type(*name) parameters;
    REAL_FUNCTIONS(REAL_FIELD)
#undef REAL_FIELD
};

extern struct real_allocator real_allocator;

/* The next definition behind us, or NULL. dlsym would leave an error then, and to forget it dlerror looks up
 * a translation, under a lock that the program may hold: bindtextdomain allocates, and that may be the first
 * time. */
void *real_allocator_next(const char *name);

/* After a dlsym that found nothing: the program must not find our error, nor the recorder, after it has
 * begun, an unknown block that is freed at the next dlsym. */
void real_allocator_forget_error(void);

/* Fills the table on first use. False while the calling thread is itself in the look-up: use the early heap.
 * Ends the program with a message if there is no allocator to be found: it could not run at all. */
bool real_allocator_ready(void);

/* Path of the file in which malloc lies, and whether that is the C library with the whole family in it. */
const char *real_allocator_module(void);
bool real_allocator_is_libc(void);

/* The library was opened after the program's start: calls do not arrive here by themselves (got_takeover.h). */
bool real_allocator_is_late(void);

/* The executable brings a malloc of its own: nothing of its heap can be recorded. */
bool real_allocator_is_shadowed(void);

#endif
#endif
