/* The live table: which sampled blocks are allocated now.
 *
 * Open addressing over buckets of six slots, one cache line of keys each:
 *
 *     bucket 17            bucket 18            bucket 19
 *     [a b c d e f] 2  ──► [g h i j k l] 1  ──► [m . . . . .] 0
 *                  │
 *                  └ overflow: two entries that belong here live further on
 *
 * A search begins at the bucket an address hashes to and goes on only while `overflow` is not zero. An
 * insertion that finds a bucket full raises its overflow before it moves on; the removal lowers it again
 * after the slot is empty. So there are no tombstones: after any amount of churn the table is as if it had
 * just been filled with what is live, and a miss is one cache line for as long as buckets do not overflow.
 *
 * When an insertion has to go far, a new segment of twice the size is opened and takes all further
 * insertions; a search looks into the segments from the newest to the oldest.
 *
 * What makes this safe without locks: an address is inserted by the thread that malloc gave it to, before
 * anyone else can know it, and removed by the thread that frees it, before the allocator can give it out
 * again. So two operations never work on the same address at once; they only compete for slots. */
#ifndef MALLOSCOPE_CORE_LIVE_TABLE_H
#define MALLOSCOPE_CORE_LIVE_TABLE_H

#include "core/arena.h"

void live_table_start(struct recording *recording, uint32_t first_buckets);

/* Fetches the place of `address` into the cache: it will be inserted or removed in a moment. */
void live_table_prefetch(struct recording *recording, uint64_t address);

enum live_insertion {
    LIVE_NO_ROOM, /* or the address has more than 48 bits: the sample must be dropped */
    LIVE_INSERTED,
    LIVE_REPLACED, /* the address was there: its former block was freed by a way that we do not see */
};

/* A former entry of the same address is noticed only where the new one is put; then it goes to `*ret_former`.
 */
enum live_insertion live_table_insert(struct recording *recording, uint64_t address,
    const struct live_entry *entry, struct live_entry *ret_former);

/* Takes `address` out. False when it is not in the table. */
bool live_table_remove(struct recording *recording, uint64_t address, struct live_entry *ret_entry);

#endif
