/* The index from hashes to numbers: whatever is added is found, and nothing else. */
#include "base/hash_index.h"
#include "check.h"

#include <stdlib.h>

enum { COUNT = 50000 };

struct search {
    const uint64_t *keys;
    uint64_t key;
};

static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    return search->keys[number] == search->key;
}

static uint32_t find(const struct hash_index *index, uint64_t hash, const uint64_t *keys, uint64_t key) {
    return hash_index_find(index, hash, is_equal, &(struct search){keys, key});
}

static void an_empty_index_has_nothing(void) {
    struct hash_index index = {0};
    uint64_t keys[1] = {7};
    CHECK_EQUAL(find(&index, 7, keys, 7), HASH_INDEX_NONE);
    hash_index_prefetch(&index, 7);
    hash_index_free(&index);
}

/* As the caller's hash may be: keys in the low half, in the high half, all alike but for a few bits. */
static void every_number_is_found_by_its_key(unsigned shift) {
    struct hash_index index = {0};
    uint64_t *keys = calloc(COUNT, sizeof *keys);
    for (uint32_t i = 0; i < COUNT; i++) {
        keys[i] = (uint64_t)i << shift;
        if (!CHECK(find(&index, keys[i], keys, keys[i]) == HASH_INDEX_NONE)) break;
        hash_index_add(&index, keys[i], i);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        if (!CHECK(find(&index, keys[i], keys, keys[i]) == i)) break;
    CHECK_EQUAL(index.count, COUNT);
    CHECK(2 * index.count <= index.mask + 1);
    CHECK_EQUAL(find(&index, (uint64_t)COUNT << shift, keys, (uint64_t)COUNT << shift), HASH_INDEX_NONE);
    hash_index_free(&index);
    free(keys);
}

static void equal_hashes_are_told_apart_by_their_keys(void) {
    struct hash_index index = {0};
    uint64_t keys[100];
    for (uint32_t i = 0; i < 100; i++) hash_index_add(&index, 1, (uint32_t)(keys[i] = i));
    for (uint32_t i = 0; i < 100; i++) CHECK_EQUAL(find(&index, 1, keys, i), i);
    hash_index_free(&index);
}

static void reserved_room_is_enough(void) {
    struct hash_index index = {0};
    hash_index_reserve(&index, 1000);
    size_t mask = index.mask;
    for (uint32_t i = 0; i < 1000; i++) hash_index_add(&index, i, i);
    CHECK_EQUAL(index.mask, mask);
    hash_index_free(&index);
}

int main(void) {
    an_empty_index_has_nothing();
    every_number_is_found_by_its_key(0);
    every_number_is_found_by_its_key(12);
    every_number_is_found_by_its_key(32);
    equal_hashes_are_told_apart_by_their_keys();
    reserved_room_is_enough();
    return check_result();
}
