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

void live_table_prefetch(struct recording *recording, uint64_t address) {
    uint64_t mask, count = atomic_load_explicit(&recording->header->live.count, memory_order_relaxed);
    if (count == 0) return;
    struct live_bucket *buckets = segment_buckets(recording, (uint32_t)count - 1, &mask);
    struct live_bucket *bucket = &buckets[hash(address) & mask];
    __builtin_prefetch(bucket->key, 1);
    __builtin_prefetch(bucket->entry, 1);
}

/* A key word without its generation, for comparing. */
static uint64_t bare(uint64_t word) {
    return word << 16;
}

#define GENERATION (LIVE_KEY_MASK + 1)

/* Takes the slot that holds `address` already, or the first empty one: the caller owns it until it stores the
 * key. */
static int claim_slot(struct live_bucket *bucket, uint64_t address, uint64_t *ret_word) {
    for (int slot = 0; slot < LIVE_SLOTS; slot++) {
        uint64_t word = atomic_load_explicit(&bucket->key[slot], memory_order_relaxed);
        if (bare(word) == bare(address)) {
            *ret_word = word;
            return slot;
        }
        if (bare(word) != 0) continue;
        /* Acquire: what the slot's former owner read of the entry came before its release of the slot. */
        uint64_t filling = (word & ~LIVE_KEY_MASK) + GENERATION + LIVE_FILLING;
        if (atomic_compare_exchange_strong_explicit(
                &bucket->key[slot], &word, filling, memory_order_acquire, memory_order_relaxed)) {
            *ret_word = filling;
            return slot;
        }
    }
    return -1;
}

/* Tries the `probes` buckets from the home bucket on. On failure the overflow counts are as before. */
static enum live_insertion insert_into(struct live_bucket *buckets, uint64_t mask, uint64_t address,
    const struct live_entry *entry, struct live_entry *ret_former, int probes) {
    uint64_t home = hash(address) & mask;
    int passed = 0;
    for (; passed < probes; passed++) {
        struct live_bucket *bucket = &buckets[(home + (uint64_t)passed) & mask];
        uint64_t word;
        int slot = claim_slot(bucket, address, &word);
        if (slot >= 0) {
            enum live_insertion done = LIVE_INSERTED;
            if (bare(word) == bare(address)) {
                done = LIVE_REPLACED;
                *ret_former = bucket->entry[slot];
                word += GENERATION;
                /* Whoever reads the old entry must find its key gone: the same order as for an empty slot. */
                atomic_store_explicit(
                    &bucket->key[slot], (word & ~LIVE_KEY_MASK) | LIVE_FILLING, memory_order_relaxed);
                atomic_thread_fence(memory_order_release);
                while (passed-- > 0) /* it has been counted where it was passed over */
                    atomic_fetch_sub_explicit(
                        &buckets[(home + (uint64_t)passed) & mask].overflow, 1, memory_order_relaxed);
            }
            bucket->entry[slot] = *entry;
            /* Release: whoever reads the key sees the whole entry. */
            atomic_store_explicit(
                &bucket->key[slot], (word & ~LIVE_KEY_MASK) | address, memory_order_release);
            return done;
        }
        atomic_fetch_add_explicit(&bucket->overflow, 1, memory_order_relaxed);
    }
    while (passed-- > 0)
        atomic_fetch_sub_explicit(
            &buckets[(home + (uint64_t)passed) & mask].overflow, 1, memory_order_relaxed);
    return LIVE_NO_ROOM;
}

/* Opens a segment twice as large as the newest, or finds it opened by another thread. */
static struct live_bucket *open_segment(struct recording *recording, uint64_t count, uint64_t *ret_mask) {
    struct table *table = &recording->header->live;
    if (count >= SEGMENTS_MAX || !table_segment(recording, table, (uint32_t)count)) return NULL;
    uint64_t seen = count;
    atomic_compare_exchange_strong_explicit(
        &table->count, &seen, count + 1, memory_order_acq_rel, memory_order_acquire);
    return segment_buckets(recording, (uint32_t)count, ret_mask);
}

enum live_insertion live_table_insert(struct recording *recording, uint64_t address,
    const struct live_entry *entry, struct live_entry *ret_former) {
    struct table *table = &recording->header->live;
    uint64_t count = atomic_load_explicit(&table->count, memory_order_acquire);
    if ((address & ~LIVE_KEY_MASK) || count == 0) return LIVE_NO_ROOM;

    uint64_t mask;
    struct live_bucket *buckets = segment_buckets(recording, (uint32_t)count - 1, &mask);
    enum live_insertion done = insert_into(buckets, mask, address, entry, ret_former, PROBE_GROW);
    if (done) return done;

    buckets = open_segment(recording, count, &mask);
    if (buckets) done = insert_into(buckets, mask, address, entry, ret_former, PROBE_MAX);
    /* No room to grow: what has been freed in any segment will do. */
    for (count = atomic_load_explicit(&table->count, memory_order_acquire); !done && count-- > 0;) {
        buckets = segment_buckets(recording, (uint32_t)count, &mask);
        done = insert_into(buckets, mask, address, entry, ret_former, PROBE_MAX);
    }
    return done;
}

static bool remove_from(
    struct live_bucket *buckets, uint64_t mask, uint64_t address, struct live_entry *ret_entry) {
    uint64_t home = hash(address) & mask, wanted = bare(address);
    for (int passed = 0; passed < PROBE_MAX; passed++) {
        struct live_bucket *bucket = &buckets[(home + (uint64_t)passed) & mask];
        for (int slot = 0; slot < LIVE_SLOTS; slot++) {
            uint64_t word = atomic_load_explicit(&bucket->key[slot], memory_order_acquire);
            if (bare(word) != wanted) continue;
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

bool live_table_remove(struct recording *recording, uint64_t address, struct live_entry *ret_entry) {
    uint64_t count = atomic_load_explicit(&recording->header->live.count, memory_order_acquire);
    while (count-- > 0) {
        uint64_t mask;
        struct live_bucket *buckets = segment_buckets(recording, (uint32_t)count, &mask);
        if (remove_from(buckets, mask, address, ret_entry)) return true;
    }
    return false;
}
