/* Events: what the figures learn when a sampled block is allocated or freed. */
#ifndef MALLOSCOPE_CORE_EVENTS_H
#define MALLOSCOPE_CORE_EVENTS_H

#include "core/arena.h"

/* What must be known of a sampled block to count it. */
struct sample {
    uint64_t size;
    uint64_t birth;
    uint32_t stack;
    uint32_t slot; /* in the live table */
};

/* The block has been put into the live table by `thread`: it counts for its stack and for the whole heap. */
void event_allocate(struct recording *recording, struct thread_record *thread, const struct sample *sample);

/* The block is freed at `now` by `thread`, which is NULL if that has no record. */
void event_free(
    struct recording *recording, struct thread_record *thread, const struct sample *sample, uint64_t now);

/* The block came from the parent process: it is live, but was not allocated here. */
void event_inherit(struct recording *recording, const struct live_entry *entry);

#endif
