#include "symbol/lookup_batch.h"

#include "base/memory.h"

#include <stdlib.h>

void lookup_batch_add(struct lookup_batch *batch, uint64_t address, struct symbol_list *result) {
    if (batch->count == batch->room) {
        batch->room = 2 * batch->room + 64;
        batch->list = memory_reallocate(batch->list, batch->room * sizeof *batch->list);
    }
    batch->list[batch->count++] = (struct lookup_request){address, result};
}

static int compare_addresses(const void *left, const void *right) {
    uint64_t a = ((const struct lookup_request *)left)->address,
             b = ((const struct lookup_request *)right)->address;
    return (a > b) - (a < b);
}

/* Fills in the results that the cache has, and lists each other address once in `missing`. Returns their number. */
static size_t take_from_cache(const struct lookup_batch *batch, const struct symbol_cache *cache,
    struct result_pool *pool, struct lookup *missing) {
    struct lookup known = {.address = 0};
    size_t missing_count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct lookup_request *request = &batch->list[i];
        if (i == 0 || request->address != known.address) {
            known = (struct lookup){.address = request->address};
            if (cache) known.frames = symbol_cache_find(cache, known.address, pool, &known.count);
            if (!known.frames) missing[missing_count++] = known;
        }
        request->result->frames = known.frames;
        request->result->count = known.count;
    }
    return missing_count;
}

/* Fills in the results that the cache did not have. */
static void fill_in(const struct lookup_batch *batch, const struct lookup *found) {
    for (size_t i = 0; i < batch->count; i++) {
        const struct lookup_request *request = &batch->list[i];
        if (request->result->frames) continue;
        while (found->address != request->address) found++; /* both are in order */
        request->result->frames = found->frames;
        request->result->count = found->count;
    }
}

void lookup_batch_resolve(struct lookup_batch *batch, struct symbol_file *file, struct symbol_cache *cache,
    struct result_pool *pool, struct result_pool_list *pools, lookup_progress progress, void *context) {
    if (!batch->count) return;
    qsort(batch->list, batch->count, sizeof *batch->list, compare_addresses);
    struct lookup *missing = memory_allocate(batch->count * sizeof *missing);
    size_t count = take_from_cache(batch, cache, pool, missing);
    if (count) {
        parallel_lookup(file, missing, count, pools, progress, context);
        fill_in(batch, missing);
        for (size_t i = 0; cache && i < count; i++)
            symbol_cache_add(cache, missing[i].address, missing[i].frames, missing[i].count);
        if (cache) symbol_cache_save(cache, file);
    }
    free(missing);
    free(batch->list);
    *batch = (struct lookup_batch){0};
}
