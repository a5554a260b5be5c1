/* Events: a sampled block was allocated or freed. They update the figures of its stack, the heap and the timeline. */
#ifndef MALLOSCOPE_CORE_EVENTS_H
#define MALLOSCOPE_CORE_EVENTS_H

#include "core/arena.h"
#include "core/sample.h"

/* `thread` has allocated the block and put it into the live table. It counts for its stack and for the whole heap. */
void events_allocate(struct recording *recording, struct thread_record *thread, const struct sample *sample);

/* `thread` frees the block at `now`. `thread` is NULL if the thread has no record. It need not be the one that
 * allocated. */
void events_free(
    struct recording *recording, struct thread_record *thread, const struct sample *sample, uint64_t now);

/* The program has told the block's type: it counts for stack record `to` from now on, as if it always had. */
void events_move(struct recording *recording, const struct sample *sample, uint32_t to);

/* The block is not to be counted: as if it had never been allocated. */
void events_withdraw(struct recording *recording, const struct sample *sample);

/* The program says how much of what was allocated from this stack is live, without reporting single blocks:
 * `objects` and `bytes`, in the units of the stack's record. */
void events_settle(
    struct recording *recording, uint32_t stack, uint64_t objects, uint64_t bytes, uint64_t now);

/* A forked child has inherited the block: it is live, but was not allocated in this recording. */
void events_inherit(struct recording *recording, const struct live_entry *entry);

#endif
