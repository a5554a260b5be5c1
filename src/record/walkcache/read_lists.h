/* Where on the stack walks read what they depend on: a walk that starts from the same pc and sp as a former
 * one, and finds the same words there, need not be made.
 *
 * Walks that start at one place may take several lists, since their callers' frames are of other sizes.
 * Where they are too many, as in a function that all others call to allocate, they are told apart by the
 * caller, whose return address all of them have in the same place; where that is not enough, by its caller
 * too.
 *
 *     sets   start ─► [a b c d]            the lists from there, or
 *            start ─► next: word 3 ─► start + word 3 ─► [a b c d]
 *     ring   … a ... │ c .. │ b .... │     as they were made; the oldest give way
 *
 * There are more sets where many lists are made. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_READ_LISTS_H
#define MALLOSCOPE_RECORD_WALKCACHE_READ_LISTS_H

#include "record/walkcache/growing_sets.h"
#include "unwind/unwind.h"

#include <assert.h>
#include <stddef.h>

#define READ_LISTS_WAYS      4u
#define READ_LISTS_SETS_MOST 4096u      /* 256 KiB */
#define READ_LISTS_RING      (1u << 20) /* bytes, of which only used pages become resident */

/* Words are read by so many at once, and none from a page of the stack that is not known to be there. That of
 * the stack pointer is. Whoever has found all words up to some place to be as in a former walk stands on the
 * same frames as that one did: then the next frame is there, too. So a group of words does not go beyond the
 * pages of those before it, but for the first one of a page, and `new_pages` has a bit for each that does. */
#define READ_GROUP 4u

struct read_list {
    uint64_t pc, sp;
    uint64_t salt; /* a hash of all of this */
    uint32_t uses_fp;
    uint32_t count; /* a multiple of READ_GROUP: some are there twice */
    uint32_t new_pages;
    uint32_t place[TRACE_WORDS]; /* as in a trace; only `count` of them are there */
};
static_assert(TRACE_WORDS / READ_GROUP <= 32, "a bit for each group");

struct read_list_set {
    _Alignas(SET_SIZE) uint64_t at[READ_LISTS_WAYS]; /* where in the ring they are */
    uint32_t recent;                                 /* which was of use last */
    uint32_t next; /* where the word is that tells them apart, plus one; 0: they need not be */
    uint64_t sum;  /* what the words on it came to then (walk_cache.c) */
};
static_assert(sizeof(struct read_list_set) == SET_SIZE, "a set");

struct read_lists {
    uint64_t made;            /* bytes of the ring, ever */
    uint32_t count;           /* of lists, since there are as many sets */
    struct growing_sets sets; /* of struct read_list_set */
    struct read_list_set first_set[SETS_AT_START];
    _Alignas(64) unsigned char ring[READ_LISTS_RING + sizeof(struct read_list)];
};

/* In zeroed memory. */
void read_lists_start(struct read_lists *lists);
/* Its memory is not used any more. */
void read_lists_free(const struct read_lists *lists);

/* Those that a walk from here may take. */
struct read_list_set *read_lists_set_of(struct read_lists *lists, const struct unwind_registers *registers);

/* One of them. NULL: it is not there, or starts elsewhere. */
static inline const struct read_list *read_lists_get(const struct read_lists *lists,
    const struct read_list_set *set, uint32_t way, const struct unwind_registers *registers) {
    uint64_t at = set->at[way];
    const struct read_list *list = (const struct read_list *)&lists->ring[at % READ_LISTS_RING];
    bool is_there = at && lists->made - at < READ_LISTS_RING;
    return is_there && list->pc == registers->pc && list->sp == registers->sp ? list : NULL;
}

/* Puts the words of a walk into groups. False: there is no room for that. Returns in `*ret_new_pages` which of
 * the groups come to another page. */
bool read_lists_align(
    const struct unwind_registers *registers, struct unwind_trace *trace, uint32_t *ret_new_pages);

/* The list of a walk that was made, whose words have been arranged. */
const struct read_list *read_lists_add(struct read_lists *lists, const struct unwind_registers *registers,
    const struct unwind_trace *trace, uint32_t new_pages);

#endif
