/* Where a symbol is defined, relative to this library, in the dynamic linker's search order.
 *
 *     executable ─ libraries preloaded before us ─ this library ─ the program's libraries ─ the C library
 *     └──────────────── before us ─────────────┘                └───────────── behind us ──────────────┘
 *
 * A function that is defined before us is the one that the whole program uses. If this library was opened late,
 * by dlopen, all of the program is before us.
 *
 * These functions read the linker's list of loaded objects without its lock. They may be called at the start,
 * when there is one thread or the linker is loading this library; later only within dl_iterate_phdr, which holds
 * the lock. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_SEARCH_ORDER_H
#define MALLOSCOPE_RECORD_INTERCEPT_SEARCH_ORDER_H

#include <stdbool.h>

/* The first definition of `name` before us, or NULL. dlsym is not used here, because it also finds what is no
 * definition: an executable at fixed addresses has symbols for the functions of libraries whose addresses it
 * takes. To tell these apart would take dladdr, which searches whole symbol tables. */
void *search_order_before(const char *name);
bool search_order_is_before(const char *name);

/* The first definition of `name` behind us, whatever its version. NULL: there is none, or its address is not
 * known without a call (an indirect function, STT_GNU_IFUNC). */
void *search_order_behind(const char *name);

#endif
