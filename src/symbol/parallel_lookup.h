/* Looks up many addresses of one file, on all processors.
 *
 * Each worker thread has a reader of the debug info of its own, so that the workers share nothing and never wait
 * for each other. The expensive part is to read a unit of the debug info, whose addresses are neighbours. So each
 * worker gets a range of neighbouring addresses. A worker that has finished its range takes over the second half
 * of the longest range that is left. */
#ifndef MALLOSCOPE_SYMBOL_PARALLEL_LOOKUP_H
#define MALLOSCOPE_SYMBOL_PARALLEL_LOOKUP_H

#include "symbol/symbol_file.h"

struct lookup {
    uint64_t address;            /* link-time */
    const struct symbol *frames; /* the result: `count` frames */
    size_t count;
};

/* Called from time to time, in the caller's thread, with the number of addresses that have been looked up. */
typedef void (*lookup_progress)(void *context, size_t found);

/* Fills in the results. `lookups` must be sorted by address. The results live in the file's pool, or in pools
 * that are added to `pools`. */
void parallel_lookup(struct symbol_file *file, struct lookup *lookups, size_t count,
    struct result_pool_list *pools, lookup_progress progress, void *context);

#endif
