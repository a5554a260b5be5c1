#include "record/intercept/libc_names.h"

#include "record/intercept/search_order.h"

#define LIBC_NAMES(X) X(malloc) X(free) X(calloc) X(realloc) X(memalign) X(valloc) X(pvalloc)

/* Where the entry code's __libc_NAME jumps to: our own function NAME at first. */
#define POINTER(name)                                                                                        \
    extern const char entry_##name[];                                                                        \
    const void *libc_names_##name = entry_##name;
LIBC_NAMES(POINTER)

void libc_names_set_apart(void) {
    const void *found;
#define SET_APART(name)                                                                                      \
    found = search_order_behind("__libc_" #name);                                                            \
    if (found) libc_names_##name = found;
    LIBC_NAMES(SET_APART)
#undef SET_APART
}
