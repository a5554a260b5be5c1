/* Where on the stack walks read what they depend on: a walk that starts from the same pc and sp as a former
 * one, and finds the same words there, need not be made.
 *
 * Walks that start at one place may take several routes, since their callers' frames are of other sizes.
 * Where they are too many, as in a function that all others call to allocate, they are told apart by the
 * caller, whose return address all of them have in the same place; where that is not enough, by its caller
 * too.
 *
 *     sets   start ─► [a b c d]            the routes from there, or
 *            start ─► next: word 3 ─► start + word 3 ─► [a b c d]
 *     ring   … a ... │ c .. │ b .... │     as they were made; the oldest give way
 *
 * There are more sets where many routes are made. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_ROUTES_H
#define MALLOSCOPE_RECORD_WALKCACHE_ROUTES_H

#include "record/walkcache/growing_sets.h"
#include "unwind/unwind.h"

#include <assert.h>
#include <stddef.h>

#define ROUTES_WAYS      4u
#define ROUTES_SETS_MOST 4096u      /* 256 KiB */
#define ROUTES_RING      (1u << 20) /* bytes, of which only used pages become resident */

/* Words are read by so many at once, and none from a page of the stack that is not known to be there. That of
 * the stack pointer is. Whoever has found all words up to some place to be as in a former walk stands on the
 * same frames as that one did: then the next frame is there, too. So a group of words does not go beyond the
 * pages of those before it, but for the first one of a page, and `turns` has a bit for each that does. */
#define ROUTE_GROUP 4u

struct route {
    uint64_t pc, sp;
    uint64_t salt; /* a hash of all of this */
    uint32_t uses_fp;
    uint32_t count; /* a multiple of ROUTE_GROUP: some are there twice */
    uint32_t turns;
    uint32_t place[TRACE_WORDS]; /* as in a trace; only `count` of them are there */
};
static_assert(TRACE_WORDS / ROUTE_GROUP <= 32, "a bit for each group");

struct route_set {
    _Alignas(SETS_LINE) uint64_t at[ROUTES_WAYS]; /* where in the ring they are */
    uint32_t recent;                              /* which was of use last */
    uint32_t next; /* where the word is that tells them apart, plus one; 0: they need not be */
    uint64_t sum;  /* what the words on it came to then (walk_cache.c) */
};
static_assert(sizeof(struct route_set) == SETS_LINE, "a set");

struct routes {
    uint64_t made;    /* bytes of the ring, ever */
    uint32_t count;   /* of routes, since there are as many sets */
    struct sets sets; /* of struct route_set */
    struct route_set first_set[SETS_FIRST];
    _Alignas(64) unsigned char ring[ROUTES_RING + sizeof(struct route)];
};

/* In zeroed memory. */
void routes_start(struct routes *routes);
/* Its memory is not used any more. */
void routes_end(const struct routes *routes);

/* Those that a walk from here may take. */
struct route_set *routes_from(struct routes *routes, const struct unwind_registers *registers);

/* One of them. NULL: it is not there, or starts elsewhere. */
static inline const struct route *route_of(const struct routes *routes, const struct route_set *set,
    uint32_t way, const struct unwind_registers *registers) {
    uint64_t at = set->at[way];
    const struct route *route = (const struct route *)&routes->ring[at % ROUTES_RING];
    bool is_there = at && routes->made - at < ROUTES_RING;
    return is_there && route->pc == registers->pc && route->sp == registers->sp ? route : NULL;
}

/* Puts the words of a walk into groups. False: there is no room for that. Returns in `*ret_turns` which of
 * the groups come to another page. */
bool routes_arrange(
    const struct unwind_registers *registers, struct unwind_trace *trace, uint32_t *ret_turns);

/* The route of a walk that was made, whose words have been arranged. */
const struct route *routes_keep(struct routes *routes, const struct unwind_registers *registers,
    const struct unwind_trace *trace, uint32_t turns);

#endif
