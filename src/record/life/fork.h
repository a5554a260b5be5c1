/* fork: the child gets a recording of its own, which begins with the blocks that the child inherits as live. The
 * parent's recording is not touched.
 *
 *     parent                                  child
 *     fork_before: copies the live table ───► has that copy, because fork copies private memory
 *     drop_inheritance                        leave_parent: at once
 *                                             fork_begin_child: at the child's first sample or free of one. Makes
 *                                             a new recording, whose live table is the copy; reads the stacks from
 *                                             the parent's recording, where they never change
 *
 * The child cannot read the parent's live table itself. The recording is shared memory, in which the parent's
 * threads go on allocating and freeing.
 *
 * A signal handler may fork in the middle of the recorder's work (work.h). Its child returns into that work, whose data
 * must stay as they are until it is done:
 *
 *     fork_before: copies the recording ────► puts the copy in the place of the shared memory, and goes on in it
 *                                             next call: fork_begin_child, as above, with the live table of the copy */
#ifndef MALLOSCOPE_RECORD_LIFE_FORK_H
#define MALLOSCOPE_RECORD_LIFE_FORK_H

#include <stdbool.h>

/* To be called once, before recording begins: from then on forks are noticed. False: the system refuses. */
bool fork_watch(void);

/* To be called in a forked child: RECORDING, which is the parent's stage, becomes RECORDING with a recording of
 * the child's own, or OFF. */
void fork_begin_child(void);

/* What the handlers of pthread_atfork do, for forks that run no handlers (bare_forks.c). `child_returns`: the child
 * goes on where its parent is, and so in what a signal handler that forks has interrupted. */
void fork_before(bool child_returns);
void fork_after_bare(bool in_child);
/* To be called in a child that does not go on there. */
void fork_child_elsewhere(void);

/* Whether this is a child that runs in the memory of the recorded process (vfork). When such a child ends, the
 * recording goes on. */
bool fork_shares_memory(void);

#endif
