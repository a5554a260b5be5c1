/* Events: what the tables learn when a sampled block is allocated or freed. */
#ifndef MALLOSCOPE_CORE_EVENTS_H
#define MALLOSCOPE_CORE_EVENTS_H

#include "core/arena.h"

/* Records the block in the live table, and then in the figures of its stack and of the whole heap. A block
 * that finds no room in the live table counts nowhere but as a drop: its free could not be told either. */
enum event_outcome {
    EVENT_DROPPED,
    EVENT_RECORDED,
    EVENT_REPLACED, /* and a former block at this address, whose free was not seen, is counted as freed */
};

enum event_outcome event_allocate(
    struct recording *recording, uint64_t address, const struct live_entry *entry);

/* The part of it that concerns the stack's totals alone. */
void event_count(struct stack_record *stack, const struct live_entry *entry, bool exact);

/* Puts back what was taken out of the live table: the block lives on (a failed realloc). */
void event_restore(struct recording *recording, uint64_t address, const struct live_entry *entry);

/* The figures after a block that was taken out of the live table has been freed by `thread` at `now`. */
void event_free(struct recording *recording, const struct live_entry *entry, uint64_t now, uint32_t thread);

#endif
