/* A batch of addresses in one file, which are looked up all at once: in the cache first, then in the file. */
#ifndef MALLOSCOPE_SYMBOL_LOOKUP_BATCH_H
#define MALLOSCOPE_SYMBOL_LOOKUP_BATCH_H

#include "symbol/parallel_lookup.h"
#include "symbol/symbol_cache.h"

struct lookup_request {
    uint64_t address;           /* link-time */
    struct symbol_list *result; /* gets `frames` and `count` */
};

/* All zero is an empty batch. */
struct lookup_batch {
    struct lookup_request *list;
    size_t count, room;
};

void lookup_batch_add(struct lookup_batch *batch, uint64_t address, struct symbol_list *result);

/* Looks up all addresses and empties the batch. The results live in `pool`, `pools` and `cache`, which must
 * outlive them. `cache` may be NULL. */
void lookup_batch_resolve(struct lookup_batch *batch, struct symbol_file *file, struct symbol_cache *cache,
    struct result_pool *pool, struct result_pool_list *pools, lookup_progress progress, void *context);

#endif
