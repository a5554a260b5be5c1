/* A sample: what must be known of a sampled block to count its allocation and its free. */
#ifndef MALLOSCOPE_CORE_SAMPLE_H
#define MALLOSCOPE_CORE_SAMPLE_H

#include "core/recording.h"

struct sample {
    uint64_t size;
    uint64_t birth; /* ns since the start of the recording */
    uint32_t stack;
    uint32_t slot;  /* in the live table */
    uint32_t heap;  /* 0 = malloc's, at the sampling interval that its stack tells */
    uint32_t count; /* objects in the block */
};

/* The mark in front of a block (record/sample/mark.h) has room for 48 bits of its birth: not for the last
 * SAMPLE_BIRTH_SHIFT bits, nor for more than 52 days. */
#define SAMPLE_BIRTH_SHIFT 4
#define SAMPLE_BIRTH_MASK  ((UINT64_C(1) << 48) - 1)

static inline uint64_t sample_birth_known(uint64_t birth) {
    return birth >> SAMPLE_BIRTH_SHIFT & SAMPLE_BIRTH_MASK;
}

/* A sample of malloc's heap: a block is one object. */
static inline struct sample sample_of_malloc(uint64_t size, uint64_t birth, uint32_t stack, uint32_t slot) {
    return (struct sample){.size = size, .birth = birth, .stack = stack, .slot = slot, .count = 1};
}

/* The sample that an entry of the live table holds. */
static inline struct sample sample_of_entry(const struct live_entry *entry, uint32_t slot, uint32_t heap) {
    return (struct sample){entry->size, entry->birth, entry->stack, slot, heap, entry->count};
}

/* Fills an entry of the live table, all but its key. */
static inline void sample_store(const struct sample *sample, struct live_entry *entry) {
    /* Relaxed: live_table_publish releases these stores. Atomic, because two kinds of late readers may be reading
     * the same words: live_table_copy, which still looks at the entry that was there, and pool_take (live_table.c),
     * which looks at the links that the slot held while it was free. Both discard what they read. */
    __atomic_store_n(&entry->size, sample->size, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->birth, sample->birth, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->stack, sample->stack, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->count, sample->count, __ATOMIC_RELAXED);
}

#endif
