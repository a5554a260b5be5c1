/* Access to the tables in doubling segments (struct table, recording.h) for their writer. */
#ifndef MALLOSCOPE_CORE_TABLE_H
#define MALLOSCOPE_CORE_TABLE_H

#include "core/arena.h"

struct table_place {
    uint32_t segment;
    uint64_t index; /* within the segment */
};

static inline struct table_place table_place(const struct table *table, uint64_t entry) {
    uint64_t position = entry + table->first;
    uint32_t segment = (uint32_t)(__builtin_clzll(table->first) - __builtin_clzll(position));
    return (struct table_place){segment, position - ((uint64_t)table->first << segment)};
}

/* An entry that table_append gave out. */
static inline void *table_entry(const struct recording *recording, struct table *table, uint64_t entry) {
    struct table_place place = table_place(table, entry);
    uint64_t offset = atomic_load_explicit(&table->segment[place.segment], memory_order_acquire);
    return recording_at(recording, offset + place.index * table->entry_size);
}

/* Makes segment `segment` if it is not there. Its offset, or 0 when the arena is full. */
uint64_t table_segment(struct recording *recording, struct table *table, uint32_t segment);

/* A new zeroed entry. Its number, or UINT64_MAX when the arena or the limit `most` is reached. */
uint64_t table_append(struct recording *recording, struct table *table, uint64_t most);

void table_start(struct table *table, uint32_t entry_size, uint32_t first);

#endif
