/* fork: the child gets a recording of its own, which begins with the blocks that the child inherits as live. The
 * parent's recording is not touched.
 *
 *     parent                                  child
 *     fork_before: copies the live table ───► has that copy, because fork copies private memory
 *     drop_inheritance                        fork_begin_child: makes a new recording, whose live table is the
 *                                             copy; reads the stacks from the parent's recording, where they
 *                                             never change
 *
 * The child cannot read the parent's live table itself. The recording is shared memory, in which the parent's
 * threads go on allocating and freeing. */
#ifndef MALLOSCOPE_RECORD_LIFE_FORK_H
#define MALLOSCOPE_RECORD_LIFE_FORK_H

#include <stdbool.h>

/* To be called once, before recording begins: from then on forks are noticed. False: the system refuses. */
bool fork_watch(void);

/* To be called in a forked child: RECORDING, which is the parent's stage, becomes RECORDING with a recording of
 * the child's own, or OFF. */
void fork_begin_child(void);

/* What the handlers of pthread_atfork do, for forks that run no handlers (bare_forks.c). */
void fork_before(void);
void fork_after_bare(bool in_child);

/* Whether this is a child that runs in the memory of the recorded process (vfork). When such a child ends, the
 * recording goes on. */
bool fork_shares_memory(void);

#endif
