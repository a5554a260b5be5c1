/* The heap table: malloc's heap, which is number 0, and heaps that the program manages itself and reports. If the
 * program changes malloc's sampling interval, the new interval is one more heap of malloc's kind (record/api). */
#ifndef MALLOSCOPE_CORE_HEAP_TABLE_H
#define MALLOSCOPE_CORE_HEAP_TABLE_H

#include "base/limits.h"
#include "core/arena.h"
#include "core/table.h"

#define HEAPS_FIRST 16u /* entries in the table's first segment */
#define HEAP_NONE   UINT32_MAX

bool heap_table_start(struct recording *recording);

/* Adds a heap. Returns its number, or HEAP_NONE if there are HEAPS_MOST heaps or there is no room. */
uint32_t heap_table_note(struct recording *recording, uint32_t name, uint64_t rate, enum heap_kind kind);

/* Copies the parent's heaps at the fork into the recording of a forked child, under the same numbers. False if
 * there is no room. */
bool heap_table_inherit(struct recording *child, const struct recording *parent);

/* The sampling interval of a heap. */
static inline uint64_t heap_table_rate(struct recording *recording, uint32_t heap) {
    const struct heap_record *record = table_mapped(recording, &recording->header->heaps, &recording->heaps,
        HEAPS_FIRST, sizeof(struct heap_record), heap);
    return record->rate;
}

#endif
