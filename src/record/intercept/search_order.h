/* What comes before us and behind us in the dynamic linker's search. Before us are the executable, and
 * libraries preloaded ahead of ours: a function that one of them defines is the one that the whole program
 * uses.
 *
 * The linker's list is read without its lock. That is for the start, when there is one thread or the linker
 * is at work on this library; later only within dl_iterate_phdr. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_SEARCH_ORDER_H
#define MALLOSCOPE_RECORD_INTERCEPT_SEARCH_ORDER_H

#include <stdbool.h>

/* dlsym would find it too, and then dladdr, which searches whole symbol tables, would have to tell whether it
 * is a definition: an executable at a fixed address also lists the functions whose addresses it takes. */
bool search_order_is_before(const char *name);

/* The first definition, or NULL. */
void *search_order_before(const char *name);

/* The first definition behind us, of any version. NULL if there is none, or if it must be asked where it is
 * (an indirect function). */
void *search_order_behind(const char *name);

#endif
