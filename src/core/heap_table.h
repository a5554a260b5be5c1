/* The heaps: malloc's, which is number 0, and those that the program manages itself and tells us about. */
#ifndef MALLOSCOPE_CORE_HEAP_TABLE_H
#define MALLOSCOPE_CORE_HEAP_TABLE_H

#include "core/arena.h"
#include "core/table.h"

#define HEAPS_MOST  1024u
#define HEAPS_FIRST 16u /* in the table's first segment */
#define HEAP_NONE   UINT32_MAX

bool heap_table_start(struct recording *recording);

/* A new heap. Its number, or HEAP_NONE when there are too many or there is no room. */
uint32_t heap_table_note(struct recording *recording, uint32_t name, uint64_t rate, enum heap_kind kind);

/* The recording of a forked child begins with its parent's heaps. False: there is no room for them. */
bool heap_table_inherit(struct recording *child, const struct recording *parent);

static inline uint64_t heap_table_rate(struct recording *recording, uint32_t heap) {
    const struct heap_record *record = table_mapped(recording, &recording->header->heaps, &recording->heaps,
        HEAPS_FIRST, sizeof(struct heap_record), heap);
    return record->rate;
}

#endif
