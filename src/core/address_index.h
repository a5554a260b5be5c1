/* The address index: which slot of the live table a block has, for blocks that carry no mark.
 *
 * Open addressing over buckets of one cache line with five places each:
 *
 *     bucket 17          bucket 18          bucket 19
 *     [a b c d e] 2  ──► [f g h i j] 1  ──► [k . . . .] 0
 *                │
 *                └ overflow: two addresses that belong here are further on
 *
 * A search begins at the bucket an address hashes to and goes on only while `overflow` is not zero. An
 * insertion that finds a bucket full raises its overflow before it moves on; the removal lowers it again
 * after the place is empty. So there are no tombstones: after any amount of churn the index is as if it had
 * just been filled with what is live, and a miss is one cache line for as long as buckets do not overflow.
 *
 * When an insertion has to go far, a new segment of twice the size is opened and takes all further
 * insertions; a search looks into the segments from the newest to the oldest.
 *
 * What makes this safe without locks: an address is inserted by the thread that malloc gave it to, before
 * anyone else can know it, and removed by the thread that frees it, before the allocator can give it out
 * again. So two operations never work on the same address at once; they only compete for places.
 *
 * tests/models/address_index.pml checks this for all interleavings.
 *
 * It lives in memory of its own, not in the recording: no reader needs it, and a forked child inherits it as
 * it is. */
#ifndef MALLOSCOPE_CORE_ADDRESS_INDEX_H
#define MALLOSCOPE_CORE_ADDRESS_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INDEX_PLACES   5
#define INDEX_SEGMENTS 26
#define INDEX_NONE     UINT32_MAX

struct index_bucket {
    _Atomic uint64_t address[INDEX_PLACES]; /* 0 = empty */
    uint32_t slot[INDEX_PLACES];
    _Atomic uint32_t overflow;
};

/* All zero is an empty index; `first` is the number of buckets in its first segment, a power of two. */
struct address_index {
    uint64_t first;
    _Atomic uint32_t count; /* segments in use */
    _Atomic uint64_t bytes; /* memory that they take */
    _Atomic(struct index_bucket *) segment[INDEX_SEGMENTS];
};

/* Notes that the block at `address` has `slot`. False when there is no memory. If the address is there
 * already (its former block was freed by a way that we do not see), `*ret_former` is its former slot, else
 * INDEX_NONE; a former one in an older segment is not noticed. */
bool address_index_insert(struct address_index *index, uint64_t address, uint32_t slot, uint32_t *ret_former);

/* The slot of an address that nobody removes meanwhile, or INDEX_NONE. */
uint32_t address_index_find(struct address_index *index, uint64_t address);

/* Takes the address out; its slot, or INDEX_NONE. */
uint32_t address_index_remove(struct address_index *index, uint64_t address);

/* Fetches the place of `address` into the cache: it will be inserted or removed in a moment. */
void address_index_prefetch(struct address_index *index, uint64_t address);

/* Sees to it that so many more addresses find room without a system call, as far as there is memory. */
void address_index_reserve(struct address_index *index, uint64_t addresses);

/* Empties it and gives its memory back. Nobody else may be using it. */
void address_index_free(struct address_index *index);

#endif
