/* Events: what the figures learn when a sampled block is allocated or freed. */
#ifndef MALLOSCOPE_CORE_EVENTS_H
#define MALLOSCOPE_CORE_EVENTS_H

#include "core/arena.h"

/* What must be known of a sampled block to count it. */
struct sample {
    uint64_t size;
    uint64_t birth;
    uint32_t stack;
    uint32_t slot; /* in the live table */
    uint32_t heap;
    uint32_t count; /* objects in the block */
};

/* A sample of malloc's heap: a block is an object. */
static inline struct sample sample_of_malloc(uint64_t size, uint64_t birth, uint32_t stack, uint32_t slot) {
    return (struct sample){.size = size, .birth = birth, .stack = stack, .slot = slot, .count = 1};
}

/* What is in the live table. */
static inline struct sample sample_of_entry(const struct live_entry *entry, uint32_t slot, uint32_t heap) {
    return (struct sample){entry->size, entry->birth, entry->stack, slot, heap, entry->count};
}
static inline void sample_store(const struct sample *sample, struct live_entry *entry) {
    /* Relaxed: live_table_publish releases them. Atomic, since who is late may be reading the slot's former
     * contents (live_table_copy), or its link to the next chain (pool_take). */
    __atomic_store_n(&entry->size, sample->size, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->birth, sample->birth, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->stack, sample->stack, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->count, sample->count, __ATOMIC_RELAXED);
}

/* The block has been put into the live table by `thread`: it counts for its stack and for the whole heap. */
void events_allocate(struct recording *recording, struct thread_record *thread, const struct sample *sample);

/* The block is freed at `now` by `thread`, which is NULL if that has no record. */
void events_free(
    struct recording *recording, struct thread_record *thread, const struct sample *sample, uint64_t now);

/* The block is found to belong to another stack record: one of another type. */
void events_move(struct recording *recording, const struct sample *sample, uint32_t to);

/* The block is not to be counted: it is as if it had never been allocated. */
void events_withdraw(struct recording *recording, const struct sample *sample);

/* So much of what was allocated from this stack is live, in the units of its record: the program says so,
 * which does not tell of single blocks. */
void events_settle(
    struct recording *recording, uint32_t stack, uint64_t objects, uint64_t bytes, uint64_t now);

/* The block came from the parent process: it is live, but was not allocated here. */
void events_inherit(struct recording *recording, const struct live_entry *entry);

#endif
