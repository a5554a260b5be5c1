#include "core/address_index.h"

#include "platform/pages.h"

#include <assert.h>
#include <stddef.h>

#define PROBE_MAX  16 /* buckets that a search visits in a segment */
#define PROBE_GROW 8  /* an insertion that goes further than this opens a new segment: at about 70 % load */

/* tests/models/address_index.pml has every step of this file: change both. */

static_assert(sizeof(struct index_bucket) == 64, "a bucket is a cache line");

struct segment {
    struct index_bucket *buckets;
    uint64_t mask;
};

static struct segment segment_at(const struct address_index *index, uint32_t number) {
    /* Acquire: pairs with the release in open_segment, so the segment's memory is seen mapped and zero. */
    return (struct segment){
        atomic_load_explicit(&index->segment[number], memory_order_acquire), (index->first << number) - 1};
}

static uint64_t hash(uint64_t address) {
    uint64_t h = address * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 32);
}

static struct index_bucket *bucket_at(struct segment segment, uint64_t home, int passed) {
    return segment.buckets + ((home + (uint64_t)passed) & segment.mask);
}

/* Takes an address off the overflow of the `passed` buckets from its home bucket on, which it went past. */
static void lower_overflow(struct segment segment, uint64_t home, int passed) {
    /* Relaxed: a search needs to see only that its own address is counted. The thread that inserted that address
     * counted it before malloc returned, and the program has passed the address on since. */
    while (passed-- > 0)
        atomic_fetch_sub_explicit(&bucket_at(segment, home, passed)->overflow, 1, memory_order_relaxed);
}

static int claim_place(struct index_bucket *bucket, uint64_t address) {
    for (int place = 0; place < INDEX_PLACES; place++) {
        uint64_t seen = 0;
        /* Acquire: pairs with the release in remove_from. The thread that removed the former address has read its slot
         * before this thread overwrites the slot. */
        if (atomic_load_explicit(&bucket->address[place], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(
                &bucket->address[place], &seen, address, memory_order_acquire, memory_order_relaxed))
            return place;
    }
    return -1;
}

/* Tries the `probes` buckets from the home bucket on. On failure the overflow counts are as before. */
static bool insert_into(struct segment segment, uint64_t address, uint32_t slot, int probes) {
    uint64_t home = hash(address) & segment.mask;
    int passed = 0;
    for (; passed < probes; passed++) {
        struct index_bucket *bucket = bucket_at(segment, home, passed);
        int place = claim_place(bucket, address);
        if (place >= 0) {
            /* Plain: no thread looks for this address before malloc has returned it. */
            bucket->slot[place] = slot;
            return true;
        }
        /* Relaxed, as in lower_overflow. */
        atomic_fetch_add_explicit(&bucket->overflow, 1, memory_order_relaxed);
    }
    lower_overflow(segment, home, passed);
    return false;
}

/* Opens segment `number`, unless another thread has. False if there is no memory. */
static bool open_segment(struct address_index *index, uint32_t number) {
    if (number >= INDEX_SEGMENTS) return false;
    uint64_t size = (index->first << number) * sizeof(struct index_bucket);
    void *made = pages_take(size);
    if (!made) return false;
    struct index_bucket *none = NULL;
    /* Release: the memory is mapped and zero before another thread can find it. */
    if (!atomic_compare_exchange_strong_explicit(
            &index->segment[number], &none, made, memory_order_acq_rel, memory_order_relaxed))
        pages_give(made, size);
    else
        atomic_fetch_add_explicit(&index->bytes, size, memory_order_relaxed);
    uint32_t seen = number;
    /* Release: a thread that sees the count sees all segments below it. If another thread has raised the count
     * instead, it had found this segment opened. */
    atomic_compare_exchange_strong_explicit(
        &index->count, &seen, number + 1, memory_order_acq_rel, memory_order_relaxed);
    return true;
}

static uint32_t remove_from(struct segment segment, uint64_t address) {
    uint64_t home = hash(address) & segment.mask;
    for (int passed = 0; passed < PROBE_MAX; passed++) {
        struct index_bucket *bucket = bucket_at(segment, home, passed);
        for (int place = 0; place < INDEX_PLACES; place++) {
            /* Relaxed: the slot beside it was written before malloc returned the address. */
            if (atomic_load_explicit(&bucket->address[place], memory_order_relaxed) != address) continue;
            uint32_t slot = bucket->slot[place];
            uint64_t seen = address;
            /* Release: pairs with the acquire in claim_place. The slot has been read before another thread takes
             * the place. If two threads free one address at the same time, one of them finds it gone. */
            if (!atomic_compare_exchange_strong_explicit(
                    &bucket->address[place], &seen, 0, memory_order_release, memory_order_relaxed))
                continue;
            lower_overflow(segment, home, passed);
            return slot;
        }
        if (atomic_load_explicit(&bucket->overflow, memory_order_relaxed) == 0) break;
    }
    return INDEX_NONE;
}

static uint32_t find_in(struct segment segment, uint64_t address) {
    uint64_t home = hash(address) & segment.mask;
    for (int passed = 0; passed < PROBE_MAX; passed++) {
        struct index_bucket *bucket = bucket_at(segment, home, passed);
        for (int place = 0; place < INDEX_PLACES; place++) /* relaxed, as in remove_from */
            if (atomic_load_explicit(&bucket->address[place], memory_order_relaxed) == address)
                return bucket->slot[place];
        if (atomic_load_explicit(&bucket->overflow, memory_order_relaxed) == 0) break;
    }
    return INDEX_NONE;
}

/* All loads of the count are acquires: they pair with the release in open_segment, so the segments below it are
 * seen. */

uint32_t address_index_find(struct address_index *index, uint64_t address) {
    uint32_t count = atomic_load_explicit(&index->count, memory_order_acquire), slot = INDEX_NONE;
    while (count-- > 0 && slot == INDEX_NONE) slot = find_in(segment_at(index, count), address);
    return slot;
}

bool address_index_insert(
    struct address_index *index, uint64_t address, uint32_t slot, uint32_t *ret_former) {
    uint32_t count = atomic_load_explicit(&index->count, memory_order_acquire);
    *ret_former = count ? remove_from(segment_at(index, count - 1), address) : INDEX_NONE;
    if (count && insert_into(segment_at(index, count - 1), address, slot, PROBE_GROW)) return true;
    if (open_segment(index, count) && insert_into(segment_at(index, count), address, slot, PROBE_MAX))
        return true;
    /* There is no memory to grow: take any empty place, in any segment. */
    count = atomic_load_explicit(&index->count, memory_order_acquire);
    while (count-- > 0)
        if (insert_into(segment_at(index, count), address, slot, PROBE_MAX)) return true;
    return false;
}

uint32_t address_index_remove(struct address_index *index, uint64_t address) {
    uint32_t count = atomic_load_explicit(&index->count, memory_order_acquire);
    while (count-- > 0) {
        uint32_t slot = remove_from(segment_at(index, count), address);
        if (slot != INDEX_NONE) return slot;
    }
    return INDEX_NONE;
}

void address_index_reserve(struct address_index *index, uint64_t addresses) {
    uint32_t count = atomic_load_explicit(&index->count, memory_order_acquire);
    while ((index->first << count) * INDEX_PLACES < 2 * addresses && open_segment(index, count)) count++;
}

void address_index_prefetch(struct address_index *index, uint64_t address) {
    uint32_t count = atomic_load_explicit(&index->count, memory_order_acquire);
    if (count == 0) return;
    struct segment segment = segment_at(index, count - 1);
    __builtin_prefetch(bucket_at(segment, hash(address) & segment.mask, 0), 1);
}

void address_index_free(struct address_index *index) {
    /* No other thread uses the index: any order would do. */
    uint32_t count = atomic_exchange_explicit(&index->count, 0, memory_order_acq_rel);
    while (count-- > 0) {
        pages_give(index->segment[count], (index->first << count) * sizeof(struct index_bucket));
        index->segment[count] = NULL;
    }
    index->bytes = 0;
}
