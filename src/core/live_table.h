/* The live table: one slot for each sampled block that is allocated now.
 *
 * A block's slot has a number. It stands in the mark in front of the block (record/sample/mark.h), or is found by
 * the block's address (address_index.h). So to insert or to remove a block is to write one entry; nothing is
 * searched for.
 *
 *     thread's list   17 ─► 4 ─► 9                   free slots; the last one freed is taken first: it is in the cache
 *     pool            [64 ─► 65 ─► …] ─► [31 ─► …]   chains of free slots that no thread holds
 *
 * A thread that frees more than it allocates gives its list to the pool, as one chain, when the list gets long. A
 * thread whose list is empty takes a chain from the pool, or makes new slots. A thread's list is changed by that
 * thread and its signal handlers only, the pool by all threads, with compare and swap.
 *
 * tests/models/live_table.pml checks this for all interleavings, live_entry.pml the memory orders of an entry. */
#ifndef MALLOSCOPE_CORE_LIVE_TABLE_H
#define MALLOSCOPE_CORE_LIVE_TABLE_H

#include "core/arena.h"
#include "core/table.h"

#include <string.h>

#define LIVE_NONE  UINT32_MAX
#define LIVE_FIRST 64u /* slots in the first segment; also, slots that are made at a time */

void live_table_start(struct recording *recording);

/* Takes a free slot, which the caller then owns. LIVE_NONE if there is no room. */
uint32_t live_table_take(
    struct recording *recording, struct thread_record *thread, struct live_entry **ret_entry);

/* The slot that live_table_take will give the calling thread next, if its list has one; else LIVE_NONE. */
static inline uint32_t live_table_spare(const struct thread_record *thread) {
    /* Relaxed: only the calling thread writes it. The lower half is the slot + 1, or 0 for none (live_table.c). */
    return (uint32_t)atomic_load_explicit(&thread->spare, memory_order_relaxed) - 1;
}

/* The entry of a slot. */
static inline struct live_entry *live_table_at(struct recording *recording, uint32_t slot) {
    return table_mapped(
        recording, &recording->header->live, &recording->live, LIVE_FIRST, sizeof(struct live_entry), slot);
}

/* The entry of a slot whose number may be damaged: NULL if there is no such slot. */
static inline struct live_entry *live_table_at_checked(struct recording *recording, uint32_t slot) {
    struct table *table = &recording->header->live;
    /* Relaxed: the thread that made a slot raised the count before it passed the slot's number on. So only numbers that
     * are not slots are refused. */
    if (slot >= atomic_load_explicit(&table->count, memory_order_relaxed)) return NULL;
    return live_table_at(recording, slot);
}

/* Publishes an entry whose other fields have been filled. From now on readers count it. */
static inline void live_table_publish(struct live_entry *entry, uint64_t address) {
    /* Release: pairs with the acquire in live_table_copy. A reader that sees the key sees the whole entry. */
    atomic_store_explicit(&entry->key, entry->birth << 48 | address, memory_order_release);
}

/* Copies an entry that other threads may be changing. False if the slot is free, or if the entry changed during each of
 * `tries` attempts. A copy is never a mixture of two entries.
 * tests/models/live_table.pml and live_entry.pml have every step of this: change all. */
static inline bool live_table_copy(const struct live_entry *entry, int tries, struct live_entry *ret_copy) {
    while (tries-- > 0) {
        /* Acquire: pairs with the release in live_table_publish. */
        uint64_t words[sizeof *entry / 8] = {atomic_load_explicit(&entry->key, memory_order_acquire)};
        if (!(words[0] & LIVE_KEY_MASK)) return false;
        /* Relaxed: if another thread is writing them, the check below fails and they are not used. */
        for (size_t i = 1; i < sizeof words / 8; i++)
            words[i] = __atomic_load_n((const uint64_t *)entry + i, __ATOMIC_RELAXED);
        /* Acquire fence: pairs with the release fence in live_table_withdraw. If one of the words above belongs to the
         * slot's next use, the key that is loaded now differs as well. */
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&entry->key, memory_order_relaxed) != words[0]) continue;
        memcpy(ret_copy, words, sizeof words);
        return true;
    }
    return false;
}

static inline uint64_t live_table_address(const struct live_entry *entry) {
    /* Relaxed: the caller reads nothing else on the strength of this. */
    return atomic_load_explicit(&entry->key, memory_order_relaxed) & LIVE_KEY_MASK;
}

/* Withdraws an entry: readers no longer count it. Its other fields stay until the slot is given back. Nothing is read,
 * since the entry may not be in the cache. */
static inline void live_table_withdraw(struct live_entry *entry) {
    atomic_store_explicit(&entry->key, 0, memory_order_relaxed);
    /* Release fence: pairs with the acquire fence in live_table_copy. A reader that sees a later write to the entry
     * also sees that the key is gone. */
    atomic_thread_fence(memory_order_release);
}

/* Withdraws an entry whose free several threads may report at once: true for one of them. `key` is the entry's key
 * word, as it was before the caller read the entry. */
static inline bool live_table_withdraw_once(struct live_entry *entry, uint64_t key) {
    /* Release: the caller's reads of the entry come before this. */
    bool is_ours = atomic_compare_exchange_strong_explicit(
        &entry->key, &key, 0, memory_order_acq_rel, memory_order_relaxed);
    /* Release fence, as in live_table_withdraw: no memory order of the exchange itself holds back the writes that
     * follow. */
    atomic_thread_fence(memory_order_release);
    return is_ours;
}

/* Gives back a slot whose entry is withdrawn. `thread` is the caller's record, NULL if it has none. */
void live_table_give_entry(
    struct recording *recording, struct thread_record *thread, uint32_t slot, struct live_entry *entry);
static inline void live_table_give(struct recording *recording, struct thread_record *thread, uint32_t slot) {
    live_table_give_entry(recording, thread, slot, live_table_at(recording, slot));
}

/* Gives the thread's whole list to the pool, because the list is long or the thread ends. */
void live_table_give_all(struct recording *recording, struct thread_record *thread);

/* Fills the table of a forked child with a copy of its parent's: the first `count` entries, each as it was at some
 * moment. Slots keep their numbers. Entries whose key is 0 become free slots. False if there is no room. */
bool live_table_inherit(struct recording *recording, const struct live_entry *copy, uint64_t count);

#endif
