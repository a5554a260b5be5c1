/* The stack table: every distinct call stack of every heap and type once, with its figures.
 *
 * Records and frames are only ever added. An index (open addressing, four bytes a place) finds a stack by its
 * hash; equal hashes are told apart by comparing all frames. When the index gets full it is built anew at
 * twice the size by whichever thread notices, while the others go on with the old one: a stack that is added
 * to the old one in that moment is merely added once more later, and readers merge equal stacks.
 *
 * tests/models/stack_table.pml checks this for all interleavings. */
#ifndef MALLOSCOPE_CORE_STACK_TABLE_H
#define MALLOSCOPE_CORE_STACK_TABLE_H

#include "core/arena.h"

#define STACK_DROPPED 0 /* the stack that stands for all that found no room */

bool stack_table_start(struct recording *recording);

/* What makes a stack: where the allocation came from, and of what kind it is. */
struct stack_key {
    const uint64_t *frames;
    uint32_t frame_count;
    uint32_t heap, type; /* as in struct stack_record */
    uint32_t flags;      /* of a new one; they do not tell stacks apart */
};

/* The number of a stack; STACK_DROPPED when it is new and there is no room for it. */
uint32_t stack_table_intern(struct recording *recording, const struct stack_key *key);

struct stack_record *stack_table_get(struct recording *recording, uint32_t stack);

/* The thread that was building an index is not in the child. */
void stack_table_after_fork(void);

#endif
