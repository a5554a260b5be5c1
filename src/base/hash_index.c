#include "base/hash_index.h"

#include "base/memory.h"

#include <stdlib.h>

#define SLOTS_LEAST 16

static void put(struct hash_index *index, struct hash_slot slot) {
    size_t at = slot.tag & index->mask;
    while (index->slots[at].number_plus_one) at = (at + 1) & index->mask;
    index->slots[at] = slot;
}

void hash_index_reserve(struct hash_index *index, size_t count) {
    size_t size = index->slots ? index->mask + 1 : SLOTS_LEAST;
    if (count >= HASH_INDEX_NONE - 1) memory_is_short(); /* numbers have 32 bits */
    while (size / 2 < count) size *= 2;
    if (index->slots && size == index->mask + 1) return;
    struct hash_index larger = {memory_allocate(size * sizeof *larger.slots), size - 1, index->count};
    for (size_t i = 0; index->slots && i <= index->mask; i++)
        if (index->slots[i].number_plus_one) put(&larger, index->slots[i]);
    free(index->slots);
    *index = larger;
}

void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t number) {
    hash_index_reserve(index, index->count + 1);
    put(index, (struct hash_slot){hash_index_tag(hash), number + 1});
    index->count++;
}

void hash_index_free(struct hash_index *index) {
    free(index->slots);
    *index = (struct hash_index){0};
}
