/* fork: the child gets a recording of its own that begins with what it inherits as live. The parent's is not
 * touched.
 *
 *     parent                                  child
 *     fork_before: copy of the live table ──► a private copy of that copy, by the kernel
 *     drop_inheritance                        fork_begin_child: a new recording, whose live table is that
 *                                             copy; the stacks are read from the parent's recording, where
 *                                             they never change
 *
 * The live table itself cannot be read in the child: the parent's threads go on changing it, in memory that
 * the two share. */
#ifndef MALLOSCOPE_RECORD_LIFE_FORK_H
#define MALLOSCOPE_RECORD_LIFE_FORK_H

#include <stdbool.h>

/* When recording begins: from now on forks are noticed. */
bool fork_watch(void);

/* A child process begins: makes it a recording of its own, or ends recording in it. */
void fork_begin_child(void);

/* What fork handlers do, for forks that run none. */
void fork_before(void);
void fork_after_bare(bool in_child);

/* Whether this is a child in its parent's memory (vfork), whose end is not that of the recording. */
bool fork_shares_memory(void);

#endif
