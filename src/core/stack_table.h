/* The stack table: every distinct call stack once, with its figures.
 *
 * Records and frames are only ever added. An index (open addressing, four bytes a place) finds a stack by its
 * hash; equal hashes are told apart by comparing all frames. When the index gets full it is built anew at
 * twice the size by whichever thread notices, while the others go on with the old one: a stack that is added
 * to the old one in that moment is merely added once more later, and readers merge equal stacks. */
#ifndef MALLOSCOPE_CORE_STACK_TABLE_H
#define MALLOSCOPE_CORE_STACK_TABLE_H

#include "core/arena.h"

#define STACK_DROPPED 0 /* the stack that stands for all that found no room */

bool stack_table_start(struct recording *recording);

/* The number of the stack with these frame words; STACK_DROPPED when it is new and there is no room for it.
 * `*ret_new` says whether it was added now. */
uint32_t stack_table_intern(
    struct recording *recording, const uint64_t *frames, uint32_t count, uint32_t flags, bool *ret_new);

struct stack_record *stack_table_get(struct recording *recording, uint32_t stack);

/* The thread that was building an index is not in the child. */
void stack_table_after_fork(void);

#endif
