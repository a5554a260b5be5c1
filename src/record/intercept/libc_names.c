#include "record/intercept/libc_names.h"

#include "record/intercept/real_allocator.h"

#define LIBC_NAMES(X) X(malloc) X(free) X(calloc) X(realloc) X(memalign) X(valloc) X(pvalloc)

/* Where the entry code jumps to: our own functions at first. */
#define POINTER(name)                                                                                        \
    extern const char ours_##name[];                                                                         \
    const void *hook_libc_##name = ours_##name;
LIBC_NAMES(POINTER)

void libc_names_set_apart(void) {
    const void *found;
#define SET_APART(name)                                                                                      \
    found = real_allocator_next("__libc_" #name);                                                            \
    if (found) hook_libc_##name = found;
    LIBC_NAMES(SET_APART)
#undef SET_APART
}
