/* Looking up many addresses of one object, on all processors.
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
struct pools {
    struct pool **list;
    size_t count;
};

void pools_free(struct pools *pools);

/* Called now and then with the number of addresses that have been looked up. */
typedef void (*find_progress)(void *context, size_t found);

/* `lookups` are sorted by address. What is found lives in the object's pool or in one that is added to
 * `pools`. */
void parallel_lookup(struct object *object, struct lookup *lookups, size_t count, struct pools *pools,
    find_progress progress, void *context);

#endif
