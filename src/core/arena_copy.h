/* A recording's memory as a private copy, at the addresses where the recording was mapped.
 *
 * A signal handler that forks may have interrupted a change to the tables. Its child goes on with that change when the
 * handler returns. The tables are shared memory, and the change is the parent's to make. So the parent copies the
 * memory before the fork, and the child puts the copy in the place of the shared memory: the same addresses, numbers
 * and states, seen by nobody else.
 *
 *     parent, before the fork        child, after it
 *     arena_copy_make ─────────────► arena_copy_adopt
 *     arena_copy_drop */
#ifndef MALLOSCOPE_CORE_ARENA_COPY_H
#define MALLOSCOPE_CORE_ARENA_COPY_H

#include "core/arena.h"

struct arena_copy;

/* NULL: there is no memory for it. */
struct arena_copy *arena_copy_make(const struct recording *recording);

void arena_copy_drop(struct arena_copy *copy);

/* Puts the copy in the place of the shared memory, and frees the rest of it. From then on the recording is private: it
 * takes room in the pieces that are mapped, and does not touch its file. Without a copy (NULL) the file is mapped anew
 * as private memory, whose pages still follow the parent's until they are written to. Returns the shared header, so
 * that the parent can be told of things; NULL if that is not possible. */
struct recording_header *arena_copy_adopt(struct recording *recording, struct arena_copy *copy);

/* Unmaps a header that arena_copy_adopt has returned. */
void arena_copy_forget_header(struct recording_header *header);

#endif
