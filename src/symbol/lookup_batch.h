/* The addresses of one object that are wanted, looked up all at once: in the cache first, then in the object.
 */
#ifndef MALLOSCOPE_SYMBOL_LOOKUP_BATCH_H
#define MALLOSCOPE_SYMBOL_LOOKUP_BATCH_H

#include "symbol/parallel_lookup.h"
#include "symbol/symbol_cache.h"

struct wanted {
    uint64_t address;           /* as linked */
    struct symbol_list *result; /* gets the frames */
};

/* All zero is empty. */
struct batch {
    struct wanted *list;
    size_t count, room;
};

void lookup_batch_add(struct batch *batch, uint64_t address, struct symbol_list *result);

/* Looks up all and empties the batch. `cache` may be NULL; it must outlive the results, as `pool` and `pools`
 * in which they are made. */
void lookup_batch_resolve(struct batch *batch, struct object *object, struct symbol_cache *cache,
    struct pool *pool, struct pools *pools, find_progress progress, void *context);

#endif
