/* The live table: the sampled blocks that are allocated now, a slot for each.
 *
 * A block's slot is known by its number: it stands in the mark in front of the block (record/sample/mark.h), or is
 * found by the block's address (address_index.h). So to insert or to remove a block is to write one entry;
 * nothing is searched for.
 *
 *     thread's list   17 ─► 4 ─► 9                free slots, last in first out: the next one is in the cache
 *     pool            [64 ─► 65 ─► …] ─► [31 ─► …]   chains that threads gave up or that were just made
 *
 * A thread that frees more than it allocates gives its list to the pool when it gets long; one that has none
 * takes a chain from there, or makes new slots. A thread's list is changed by that thread and by its signal
 * handlers only; the pool by all, with compare and swap.
 *
 * tests/models/live_table.pml checks this for all interleavings, live_entry.pml the memory orders of an
 * entry. */
#ifndef MALLOSCOPE_CORE_LIVE_TABLE_H
#define MALLOSCOPE_CORE_LIVE_TABLE_H

#include "core/arena.h"
#include "core/table.h"

#include <string.h>

#define LIVE_NONE  UINT32_MAX
#define LIVE_FIRST 64u /* slots in the first segment, and made at once */

void live_table_start(struct recording *recording);

/* A free slot that the caller now owns, and its entry; or LIVE_NONE when there is no room. */
uint32_t live_table_take(
    struct recording *recording, struct thread_record *thread, struct live_entry **ret_entry);

/* The slot that the thread will be given next, if it is known; else LIVE_NONE. */
static inline uint32_t live_table_spare(const struct thread_record *thread) {
    /* Relaxed: the thread's own. The number is one more, or 0 (live_table.c). */
    return (uint32_t)atomic_load_explicit(&thread->spare, memory_order_relaxed) - 1;
}

/* The entry of a slot. */
static inline struct live_entry *live_table_at(struct recording *recording, uint32_t slot) {
    return table_mapped(
        recording, &recording->header->live, &recording->live, LIVE_FIRST, sizeof(struct live_entry), slot);
}

/* The same, and NULL for a number that never was a slot. */
static inline struct live_entry *live_table_at_checked(struct recording *recording, uint32_t slot) {
    struct table *table = &recording->header->live;
    /* Relaxed: a number that is a slot was given to us by who made it, or later; only nonsense is refused. */
    if (slot >= atomic_load_explicit(&table->count, memory_order_relaxed)) return NULL;
    return live_table_at(recording, slot);
}

/* Publishes an entry whose other fields have been filled: from now on readers count it. */
static inline void live_table_publish(struct live_entry *entry, uint64_t address) {
    /* Release: who reads the key sees the whole entry. */
    atomic_store_explicit(&entry->key, entry->birth << 48 | address, memory_order_release);
}

/* A copy of an entry that others may be using just now: whole, or none. False: it is free, or has not held
 * still for so many tries.
 * tests/models/live_table.pml and live_entry.pml have every step of this: change both. */
static inline bool live_table_copy(const struct live_entry *entry, int tries, struct live_entry *ret_copy) {
    while (tries-- > 0) {
        /* Acquire: goes with the release of live_table_publish. */
        uint64_t words[sizeof *entry / 8] = {atomic_load_explicit(&entry->key, memory_order_acquire)};
        if (!(words[0] & LIVE_KEY_MASK)) return false;
        /* Relaxed: they may be written just now, and are then not used. */
        for (size_t i = 1; i < sizeof words / 8; i++)
            words[i] = __atomic_load_n((const uint64_t *)entry + i, __ATOMIC_RELAXED);
        /* With the release fence of live_table_withdraw: if any word was a later one, so is the key, read now. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) != words[0]) continue;
        memcpy(ret_copy, words, sizeof words);
        return true;
    }
    return false;
}

static inline uint64_t live_table_address(const struct live_entry *entry) {
    /* Relaxed: nothing else is read on the strength of it. */
    return atomic_load_explicit(&entry->key, memory_order_relaxed) & LIVE_KEY_MASK;
}

/* Readers count it no more; its other fields stay until the slot is given back. Nothing is read: the entry
 * may be far from the cache. */
static inline void live_table_withdraw(struct live_entry *entry) {
    atomic_store_explicit(&entry->key, 0, memory_order_relaxed);
    /* The key is seen gone before any of what will be written over the entry. */
    atomic_thread_fence(memory_order_release);
}

/* The same for a block whose free may be told by several threads at once: one of them succeeds. `key` is what
 * the entry's key word was before the entry was read. */
static inline bool live_table_withdraw_once(struct live_entry *entry, uint64_t key) {
    /* Release: the entry has been read before it is given up. */
    bool is_ours = atomic_compare_exchange_strong_explicit(
        &entry->key, &key, 0, memory_order_acq_rel, memory_order_relaxed);
    /* As in live_table_withdraw: no order of the exchange itself holds back the writes that follow it. */
    atomic_thread_fence(memory_order_release);
    return is_ours;
}

/* Gives back a slot whose entry is withdrawn. `thread` is the caller's record, NULL if it has none. */
void live_table_give_entry(
    struct recording *recording, struct thread_record *thread, uint32_t slot, struct live_entry *entry);
static inline void live_table_give(struct recording *recording, struct thread_record *thread, uint32_t slot) {
    live_table_give_entry(recording, thread, slot, live_table_at(recording, slot));
}

/* Gives the thread's whole list to the pool: it ends. */
void live_table_give_all(struct recording *recording, struct thread_record *thread);

/* Takes over the table of a parent process: `copy` is its first `count` entries as they were at some moment,
 * of which those whose key is 0 are free. False when there is no room. */
bool live_table_inherit(struct recording *recording, const struct live_entry *copy, uint64_t count);

#endif
