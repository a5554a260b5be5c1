/* The stack table: each distinct call stack, with its heap and type, once, and its figures.
 *
 * Records and frames are added and never removed. An index finds a stack by its hash: a hash table with open
 * addressing, four bytes a place. Stacks with equal hashes are told apart by comparing all frames. When the index
 * is half full, the thread that notices builds a larger one, while other threads go on with the old one. A stack
 * that another thread adds to the old index at that moment may be missing in the new one. Then it gets a second
 * record later, and readers merge equal stacks.
 *
 * Stacks may take a part of the recording, so that there is always room for live samples. When that is nearly full, new
 * stacks are folded: only their inner and outer frames are kept, so that stacks which differ in between become one. At
 * last new stacks are not kept at all. No sample is lost by that.
 *
 *     bytes in use, of arena_limit   a new stack is kept
 *     less than 1/2                  whole
 *     less than 5/8                  with its 12 inner and 4 outer frames
 *     less than 3/4                  with its 3 inner frames and the outermost one
 *     more                           not: its allocations count for STACK_DROPPED
 *
 * tests/models/stack_table.pml checks the index for all interleavings. */
#ifndef MALLOSCOPE_CORE_STACK_TABLE_H
#define MALLOSCOPE_CORE_STACK_TABLE_H

#include "core/arena.h"

#define STACK_DROPPED 0 /* the record that counts for all stacks that found no room */

bool stack_table_start(struct recording *recording);

/* By what stacks are told apart: frames, heap and type. */
struct stack_key {
    const uint64_t *frames;
    uint32_t frame_count;
    uint32_t heap, type; /* as in struct stack_record */
    uint32_t flags;      /* for a new record; not part of the key */
};

/* The number of a stack, which is added if it is new. STACK_DROPPED if it is new and there is no room for it. */
uint32_t stack_table_intern(struct recording *recording, const struct stack_key *key);

struct stack_record *stack_table_get(struct recording *recording, uint32_t stack);

/* To be called in a forked child: if a thread of the parent was building an index, it does not go on in the child. */
void stack_table_after_fork(void);

#endif
