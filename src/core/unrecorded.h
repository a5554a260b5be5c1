/* The programs that the recorded one has started, or has become, and that are not recorded: a small table in the
 * recording, so that nobody takes what is recorded for all there was.
 *
 * The table is made with the recording and lies in its first piece. So it can be written by whoever has the recording
 * mapped: signal handlers, vfork children, and forked children that have no recording of their own yet. A place is
 * taken by one compare and swap of its key. */
#ifndef MALLOSCOPE_CORE_UNRECORDED_H
#define MALLOSCOPE_CORE_UNRECORDED_H

#include "core/arena.h"

/* Makes the table, in a new recording. Without space there is none. */
void unrecorded_start(struct recording *recording);

/* Counts one start of the program at `path`. Returns the count, so that a caller whose start fails can take it back;
 * NULL if the recording has no table. */
_Atomic uint64_t *unrecorded_note(
    struct recording *recording, const char *path, enum unrecorded_reason reason);

#endif
