/* Looking up many addresses of one file, on all processors.
 *
 * Each helper reads the debug info on its own, so that nothing is shared and nothing waits. What is expensive
 * is to read a unit, and units lie one after the other: a helper works through neighbouring addresses, and
 * one that has finished takes over the farther half of what another has left. */
#ifndef MALLOSCOPE_SYMBOL_PARALLEL_LOOKUP_H
#define MALLOSCOPE_SYMBOL_PARALLEL_LOOKUP_H

#include "symbol/symbol_file.h"

struct lookup {
    uint64_t address; /* as linked */
    const struct symbol *frames;
    size_t count;
};

/* Memory of helpers: what they found lives in it. */
struct result_pool_list {
    struct result_pool **list;
    size_t count;
};

void result_pool_list_free(struct result_pool_list *pools);

/* Called now and then with the number of addresses that have been looked up. */
typedef void (*lookup_progress)(void *context, size_t found);

/* `lookups` are sorted by address. What is found lives in the file's pool or in one that is added to
 * `pools`. */
void parallel_lookup(struct symbol_file *file, struct lookup *lookups, size_t count,
    struct result_pool_list *pools, lookup_progress progress, void *context);

#endif
