/* Read lists: which words of the stack a walk reads.
 *
 * A walk's result depends on the registers it starts from and on the words it reads from the stack: return
 * addresses and saved frame pointers. A read list has the places of these words, as distances from the stack
 * pointer. A walk that starts at the same pc and sp as the one that made the list, and would find the same words at
 * these places, would find the same frames. So it need not be made (walk_cache.h).
 *
 * Walks that start at one pc and sp may have several lists, because the frames of their callers differ in size. A
 * set holds READ_LISTS_WAYS of them. A function through which the whole program allocates has more. Then its set is
 * split. All walks from one pc and sp read their first word at one place, which follows from the pc: in most cases
 * the return address into the caller. That word becomes part of the hash, and tells callers apart. If such a set
 * gets full in turn, the second word is taken as well, and so on.
 *
 *     sets   pc, sp ─► [a b c d]                          the lists of walks from there
 *            pc, sp ─► split by the word at place 3 ─► pc, sp and that word ─► [a b c d]
 *     ring   … a ... │ c .. │ b .... │                    lists as they were made; new ones overwrite the oldest
 *
 * The number of sets grows with the number of lists that are made. */
#ifndef MALLOSCOPE_RECORD_WALKCACHE_READ_LISTS_H
#define MALLOSCOPE_RECORD_WALKCACHE_READ_LISTS_H

#include "record/walkcache/growing_sets.h"
#include "unwind/unwind.h"

#include <assert.h>
#include <stddef.h>

#define READ_LISTS_WAYS      4u
#define READ_LISTS_SETS_MOST 4096u      /* 256 KiB */
#define READ_LISTS_RING      (1u << 20) /* bytes; pages that are not used yet take no memory */
#define READ_LISTS_RING_STEP (64u << 10)

/* Words are read in groups of READ_GROUP, and no page of the stack is read that may not be mapped. The page of the
 * stack pointer is mapped. If all words up to some group are those of a former walk, the frames up to there are
 * those of the former walk, so the frame that comes next exists, and the page that holds it is mapped. Therefore a
 * group lies in pages that the groups before it lie in, or it is the first that reaches a new page. The latter have
 * a bit in `new_pages`: before such a group is read, the words before it must have been recognised. */
#define READ_GROUP 4u

struct read_list {
    uint64_t pc, sp;  /* where the walk starts */
    uint64_t salt;    /* a hash of pc, sp, uses_fp and the places */
    uint32_t uses_fp; /* the walk also depends on the frame pointer that it starts from */
    uint32_t count;   /* a multiple of READ_GROUP: some places are there twice */
    uint32_t new_pages;
    uint32_t place[TRACE_WORDS]; /* as in struct unwind_trace; memory is taken for `count` of them */
};
static_assert(TRACE_WORDS / READ_GROUP <= 32, "new_pages has a bit for each group");

struct read_list_set {
    _Alignas(SET_SIZE) uint64_t at[READ_LISTS_WAYS]; /* positions in the ring, never reduced; 0: none */
    uint32_t recent;                                 /* which of them was of use last */
    uint32_t
        split; /* 1 + the place of the word by which walks go on to another set; 0: they stay in this one */
    uint64_t sum; /* for walk_cache.c: what the words of the last walk from here came to */
};
static_assert(sizeof(struct read_list_set) == SET_SIZE, "a set is a cache line");

/* Belongs to one thread. A signal handler that leaves by longjmp at any instruction does no harm: a set names a
 * list only when the list is whole. */
struct read_lists {
    uint64_t made;            /* the position in the ring where the next list begins; 0: there is none yet */
    uint64_t ring_taken;      /* bytes of the ring that lists may lie in: it is taken into use in steps */
    uint32_t count;           /* lists made since the sets were last made more */
    struct growing_sets sets; /* of struct read_list_set */
    struct read_list_set first_set[SETS_AT_START];
    /* A list that begins near the end of the ring reaches beyond it. */
    _Alignas(64) unsigned char ring[READ_LISTS_RING + sizeof(struct read_list)];
};

/* `lists` is zeroed memory. */
void read_lists_start(struct read_lists *lists);
void read_lists_free(const struct read_lists *lists);

/* The set with the lists that a walk from these registers may have. */
struct read_list_set *read_lists_set_of(struct read_lists *lists, const struct unwind_registers *registers);

/* List number `way` of the set. NULL: there is none, it was overwritten, or its walk starts elsewhere. */
static inline const struct read_list *read_lists_get(const struct read_lists *lists,
    const struct read_list_set *set, uint32_t way, const struct unwind_registers *registers) {
    uint64_t at = set->at[way];
    const struct read_list *list = (const struct read_list *)&lists->ring[at % READ_LISTS_RING];
    bool is_there = at && lists->made - at < READ_LISTS_RING;
    return is_there && list->pc == registers->pc && list->sp == registers->sp ? list : NULL;
}

/* Arranges the words of a walk into groups, as READ_GROUP says: words are repeated so that each group is full and
 * each new page begins a group. `*ret_new_pages` gets the bits of the groups that begin a page. False: the repeated
 * words do not fit. */
bool read_lists_align(
    const struct unwind_registers *registers, struct unwind_trace *trace, uint32_t *ret_new_pages);

/* The list of a walk that was made, whose words were aligned: the one that is there, or a new one. */
const struct read_list *read_lists_add(struct read_lists *lists, const struct unwind_registers *registers,
    const struct unwind_trace *trace, uint32_t new_pages);

#endif
