/* A set-associative table that grows: sets of one cache line each, selected by bits of a hash.
 *
 *     hash, 16 sets    …0110…      ─► set 6
 *     hash, 32 sets    …10110…     ─► set 22: what was in set 6 belongs into set 6 or set 22
 *
 * What is in a set is the owner's affair (walk_cache.c, read_lists.c), which also moves it to a larger table.
 *
 * A table belongs to one thread, and is used by no other. A signal handler of that thread may leave by longjmp at
 * any instruction. The worst that comes of it is that some sets are not found any more, or that the memory of a
 * table is never given back. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_GROWING_SETS_H
#define MALLOSCOPE_RECORD_WALKCACHE_GROWING_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SET_SIZE      64u   /* bytes: a cache line */
#define SETS_AT_START 1024u /* 64 KiB, which each thread has in any case */

/* The bytes that the walk caches of all threads may take together. A thread that finds no room left keeps what it
 * has. */
#define SETS_BYTES_MOST ((size_t)48 << 20)

/* The number of sets is a power of two, so that a mask selects one. */
struct growing_sets {
    unsigned char *first;
    uint64_t mask; /* (number of sets − 1) × SET_SIZE: for a set's distance from the first, in bytes */
};

/* Bit 40 of the hash is the lowest that selects a set. Hashes are products: the bits below 40 have an influence on
 * those above. log2(SET_SIZE) = 6 less is shifted, which makes a number of sets a number of bytes. */
static inline void *growing_sets_at(const struct growing_sets *sets, uint64_t hash) {
    return sets->first + (hash >> (40 - 6) & sets->mask);
}

static inline uint64_t growing_sets_count(const struct growing_sets *sets) {
    return sets->mask / SET_SIZE + 1;
}

/* Begins with SETS_AT_START sets in memory of the caller's, at `first`, which is zero and stays the caller's. */
void growing_sets_start(struct growing_sets *sets, void *first);

/* Makes a zeroed table of `count` sets, a power of two, or of fewer if there is no room for that; of more than
 * `sets` has in any case. The caller fills it with what is in `sets`. False: there is no room or no memory. */
bool growing_sets_make_larger(
    const struct growing_sets *sets, uint64_t count, struct growing_sets *ret_larger);

/* Puts the larger table in the place of the former one, whose memory is given back. */
void growing_sets_replace(struct growing_sets *sets, const struct growing_sets *larger);

/* Memory of walk caches beside these tables, which counts as theirs. False: there is no room for it. */
bool growing_sets_take(size_t size);
void growing_sets_give(size_t size);

/* The bytes that are taken now. */
size_t growing_sets_bytes(void);

/* To be called in a forked child: the tables of the parent's other threads belong to nobody there. */
void growing_sets_after_fork(void);

/* Gives the memory of the table back. */
void growing_sets_free(const struct growing_sets *sets);

#endif
