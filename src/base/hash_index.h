/* An index from the hash of a key to the number of a thing that lies in an array of the caller's.
 *
 * The index keeps a part of each hash (the tag) and the number, but not the key. The caller compares keys.
 *
 *     the caller's array    0: "main" │ 1: "parse" │ 2: "read"
 *     slots                 tag, 2 │ empty │ tag, 0 │ tag, 1 │ empty │ empty │ …
 *
 * It is a table with open addressing and linear probing. Its size is a power of two, so that `tag & mask` selects
 * the slot at which a search begins. At most half of the slots are full, so that a search ends soon at an empty
 * one. Things are never removed.
 *
 * Tags have 32 bits. A search therefore hardly ever compares a key that is not equal, and a look-up costs one cache
 * miss for the slot and one for the thing that is found. hash_index_find is inline: `is_equal` is a constant at
 * each call, and the compiler puts the comparison into the loop. */
#ifndef MALLOSCOPE_BASE_HASH_INDEX_H
#define MALLOSCOPE_BASE_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_INDEX_NONE UINT32_MAX

struct hash_slot {
    uint32_t tag;
    uint32_t number_plus_one; /* 0: the slot is empty */
};

/* A zeroed struct is an empty index. */
struct hash_index {
    struct hash_slot *slots;
    size_t mask;  /* number of slots - 1 */
    size_t count; /* full slots */
};

/* Whether the thing of that number has the key that `search` describes. */
typedef bool hash_index_is_equal(const void *search, uint32_t number);

/* The hash may have all its information in any of its bits: they are mixed here. */
static inline uint32_t hash_index_tag(uint64_t hash) {
    return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* The number of the thing that was added under this hash and is equal, or HASH_INDEX_NONE. */
static inline uint32_t hash_index_find(
    const struct hash_index *index, uint64_t hash, hash_index_is_equal *is_equal, const void *search) {
    if (!index->slots) return HASH_INDEX_NONE;
    uint32_t tag = hash_index_tag(hash);
    for (size_t at = tag & index->mask;; at = (at + 1) & index->mask) {
        struct hash_slot slot = index->slots[at];
        if (!slot.number_plus_one) return HASH_INDEX_NONE;
        if (slot.tag == tag && is_equal(search, slot.number_plus_one - 1)) return slot.number_plus_one - 1;
    }
}

/* Fetches the slot for a hash into the cache. A caller that knows its next searches calls this some of them ahead. */
static inline void hash_index_prefetch(const struct hash_index *index, uint64_t hash) {
    if (index->slots) __builtin_prefetch(&index->slots[hash_index_tag(hash) & index->mask], 1);
}

/* Adds a number below HASH_INDEX_NONE - 1. The caller has made sure that no equal thing was added before. */
void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t number);

/* Makes room for `count` things in all, so that the index need not grow on the way. */
void hash_index_reserve(struct hash_index *index, size_t count);

void hash_index_free(struct hash_index *index);

#endif
