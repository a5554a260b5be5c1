#include "core/live_table.h"

#include "core/table.h"

#define PROBE_MAX  16 /* buckets that a search visits in a segment */
#define PROBE_GROW 8  /* an insertion that goes further than this opens a new segment: at about 70 % load */

static uint64_t hash(uint64_t address) {
    uint64_t h = address * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 32);
}

static struct live_bucket *segment_buckets(
    struct recording *recording, uint32_t segment, uint64_t *ret_mask) {
    struct table *table = &recording->header->live;
    *ret_mask = ((uint64_t)table->first << segment) - 1;
    return recording_at(recording, atomic_load_explicit(&table->segment[segment], memory_order_acquire));
}

void live_table_start(struct recording *recording, uint32_t first_buckets) {
    struct table *table = &recording->header->live;
    table_start(table, sizeof(struct live_bucket), first_buckets);
    if (table_segment(recording, table, 0)) atomic_store_explicit(&table->count, 1, memory_order_release);
}

/* Takes an empty slot: the winner owns it until it stores the key. */
static int claim_slot(struct live_bucket *bucket, uint64_t *ret_generation) {
    for (int slot = 0; slot < LIVE_SLOTS; slot++) {
        uint64_t word = atomic_load_explicit(&bucket->key[slot], memory_order_relaxed);
        if (word & LIVE_KEY_MASK) continue;
        uint64_t generation = (word & ~LIVE_KEY_MASK) + (LIVE_KEY_MASK + 1);
        /* Acquire: what the slot's former owner read of the entry came before its release of the slot. */
        if (atomic_compare_exchange_strong_explicit(&bucket->key[slot], &word, generation | LIVE_FILLING,
                memory_order_acquire, memory_order_relaxed)) {
            *ret_generation = generation;
            return slot;
        }
    }
    return -1;
}

/* Tries the `probes` buckets from the home bucket on. On failure the overflow counts are as before. */
static bool insert_into(struct live_bucket *buckets, uint64_t mask, uint64_t address,
    const struct live_entry *entry, int probes) {
    uint64_t home = hash(address) & mask;
    int passed = 0;
    for (; passed < probes; passed++) {
        struct live_bucket *bucket = &buckets[(home + (uint64_t)passed) & mask];
        uint64_t generation;
        int slot = claim_slot(bucket, &generation);
        if (slot >= 0) {
            bucket->entry[slot] = *entry;
            /* Release: whoever reads the key sees the whole entry. */
            atomic_store_explicit(&bucket->key[slot], generation | address, memory_order_release);
            return true;
        }
        atomic_fetch_add_explicit(&bucket->overflow, 1, memory_order_relaxed);
    }
    while (passed-- > 0)
        atomic_fetch_sub_explicit(
            &buckets[(home + (uint64_t)passed) & mask].overflow, 1, memory_order_relaxed);
    return false;
}

bool live_table_insert(struct recording *recording, uint64_t address, const struct live_entry *entry) {
    struct table *table = &recording->header->live;
    uint64_t count = atomic_load_explicit(&table->count, memory_order_acquire);
    if ((address & ~LIVE_KEY_MASK) || count == 0) return false;

    uint64_t mask;
    struct live_bucket *buckets = segment_buckets(recording, (uint32_t)count - 1, &mask);
    if (insert_into(buckets, mask, address, entry, PROBE_GROW)) return true;

    if (count < SEGMENTS_MAX && table_segment(recording, table, (uint32_t)count)) {
        uint64_t expected = count;
        atomic_compare_exchange_strong_explicit(
            &table->count, &expected, count + 1, memory_order_acq_rel, memory_order_acquire);
        buckets = segment_buckets(recording, (uint32_t)count, &mask);
        if (insert_into(buckets, mask, address, entry, PROBE_MAX)) return true;
    }
    /* No room to grow: what has been freed in any segment will do. */
    for (count = atomic_load_explicit(&table->count, memory_order_acquire); count-- > 0;) {
        buckets = segment_buckets(recording, (uint32_t)count, &mask);
        if (insert_into(buckets, mask, address, entry, PROBE_MAX)) return true;
    }
    return false;
}

/* Searches `probes` buckets from the home bucket on. */
static bool remove_from(
    struct live_bucket *buckets, uint64_t mask, uint64_t address, struct live_entry *ret_entry, int probes) {
    uint64_t home = hash(address) & mask;
    for (int passed = 0; passed < probes; passed++) {
        struct live_bucket *bucket = &buckets[(home + (uint64_t)passed) & mask];
        for (int slot = 0; slot < LIVE_SLOTS; slot++) {
            uint64_t word = atomic_load_explicit(&bucket->key[slot], memory_order_acquire);
            if ((word & LIVE_KEY_MASK) != address) continue;
            *ret_entry = bucket->entry[slot];
            /* Release: the entry has been read before another may fill the slot. */
            atomic_store_explicit(&bucket->key[slot], word & ~LIVE_KEY_MASK, memory_order_release);
            while (passed-- > 0)
                atomic_fetch_sub_explicit(
                    &buckets[(home + (uint64_t)passed) & mask].overflow, 1, memory_order_relaxed);
            return true;
        }
        if (atomic_load_explicit(&bucket->overflow, memory_order_relaxed) == 0) return false;
    }
    return false;
}

bool live_table_remove_near(struct recording *recording, uint64_t address, struct live_entry *ret_entry) {
    uint64_t mask, count = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    if (count == 0) return false;
    struct live_bucket *buckets = segment_buckets(recording, (uint32_t)count - 1, &mask);
    return remove_from(buckets, mask, address, ret_entry, 1);
}

bool live_table_remove(struct recording *recording, uint64_t address, struct live_entry *ret_entry) {
    uint64_t count = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    while (count-- > 0) {
        uint64_t mask;
        struct live_bucket *buckets = segment_buckets(recording, (uint32_t)count, &mask);
        if (remove_from(buckets, mask, address, ret_entry, PROBE_MAX)) return true;
    }
    return false;
}
