/* Tables of sets, each a line of the cache, found by bits of a hash, and made larger by need.
 *
 *     hash     …0110…       ─► set 6 of 16
 *     larger   …10110…      ─► set 22 of 32: what was in set 6 goes into 6 and 22
 *
 * A thread has its own. A signal handler may jump out anywhere: all that can happen then is that some of the
 * sets are not found any more, or that a table is not given back. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_GROWING_SETS_H
#define MALLOSCOPE_RECORD_WALKCACHE_GROWING_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SET_SIZE      64u
#define SETS_AT_START 1024u /* 64 KiB: each thread has those, whether of use or not */

/* What all threads together may have beyond what they start with, in bytes. Who finds none left goes on with
 * the table that it has. */
#define SETS_BYTES_MOST ((size_t)128 << 20)

/* Powers of two are as many as these. */
struct growing_sets {
    unsigned char *first;
    uint64_t mask; /* of the distance to the first, in bytes */
};

/* By the bits from the fortieth on, which those below had a part in when the hash was multiplied; six of them
 * are for the bytes of a set. */
static inline void *growing_sets_at(const struct growing_sets *sets, uint64_t hash) {
    return sets->first + (hash >> (40 - 6) & sets->mask);
}

static inline uint64_t growing_sets_count(const struct growing_sets *sets) {
    return sets->mask / SET_SIZE + 1;
}

/* The table to start with: zeroed lines of the caller's, which are never given back from here. */
void growing_sets_start(struct growing_sets *sets, void *first);

/* A zeroed table of up to `count` sets, more than there are. False: there is no room for it. The caller fills
 * it with what is in the former one. */
bool growing_sets_make_larger(
    const struct growing_sets *sets, uint64_t count, struct growing_sets *ret_larger);

/* Uses it from now on, and gives the former one back. */
void growing_sets_replace(struct growing_sets *sets, const struct growing_sets *larger);

/* In a forked child the other threads' tables are nobody's. */
void growing_sets_after_fork(void);

/* The table is not used any more. */
void growing_sets_free(const struct growing_sets *sets);

#endif
