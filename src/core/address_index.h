/* The address index: the slot in the live table of each block that carries no mark, by the block's address.
 *
 * A hash table with open addressing. A bucket is one cache line with five places:
 *
 *     bucket 17          bucket 18          bucket 19
 *     [a b c d e] 2  ──► [f g h i j] 1  ──► [k . . . .] 0
 *                 │
 *                 └ overflow: the number of addresses that found this bucket full and went on
 *
 * A search begins at the bucket that the address hashes to, and goes on to the next bucket only if `overflow` is
 * not 0. An insertion that finds a bucket full raises its overflow before it goes on. The removal lowers it again,
 * after the place is empty. So there are no tombstones: however many addresses have come and gone, the index is as
 * if it had just been filled with the live ones, and a search for an address that is not there reads one cache line
 * if its bucket has no overflow.
 *
 * If an insertion has to go far, a new segment of twice the size is opened, which takes all further insertions. A
 * search looks into the segments from the newest to the oldest.
 *
 * Why this needs no locks: an address is inserted by the thread that got it from malloc, before any other thread
 * can know it, and removed by the thread that frees it, before the allocator can give it out again. So two
 * operations never work on the same address at once; they only compete for places.
 *
 * tests/models/address_index.pml checks this for all interleavings.
 *
 * The index lies in private memory of the process, not in the recording: readers do not need it, and a forked child
 * inherits it as it is. */
#ifndef MALLOSCOPE_CORE_ADDRESS_INDEX_H
#define MALLOSCOPE_CORE_ADDRESS_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INDEX_PLACES   5
#define INDEX_SEGMENTS 26
#define INDEX_NONE     UINT32_MAX
#define INDEX_IGNORED                                                                                        \
    (UINT32_MAX - 1) /* in place of a slot: the program wants the block ignored; no slot has it */

struct index_bucket {
    _Atomic uint64_t address[INDEX_PLACES]; /* 0 = empty */
    uint32_t slot[INDEX_PLACES];
    _Atomic uint32_t overflow;
};

/* All zero but `first` is an empty index. `first` is the number of buckets in its first segment, a power of two: bucket
 * numbers are taken by `hash & (buckets - 1)`. */
struct address_index {
    uint64_t first;
    _Atomic uint32_t count; /* segments in use */
    _Atomic uint64_t bytes; /* memory that the segments take */
    _Atomic(struct index_bucket *) segment[INDEX_SEGMENTS];
};

/* Notes that the block at `address` has `slot`. False if there is no memory. `*ret_former` is INDEX_NONE, or the
 * former slot of the address if it was in the index already: a block was freed there in a way that the recorder
 * does not see. A former slot in a segment other than the newest is not noticed. */
bool address_index_insert(struct address_index *index, uint64_t address, uint32_t slot, uint32_t *ret_former);

/* The slot of an address, or INDEX_NONE. No other thread may remove the address meanwhile. */
uint32_t address_index_find(struct address_index *index, uint64_t address);

/* Removes the address. Returns its slot, or INDEX_NONE if it is not there. */
uint32_t address_index_remove(struct address_index *index, uint64_t address);

/* Fetches the bucket of `address` into the cache, because the address is about to be inserted or removed. */
void address_index_prefetch(struct address_index *index, uint64_t address);

/* Opens segments until so many more addresses find room without a system call, or there is no more memory. */
void address_index_reserve(struct address_index *index, uint64_t addresses);

/* Empties the index and gives its memory back. No other thread may be using it. */
void address_index_free(struct address_index *index);

#endif
