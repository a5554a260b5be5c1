/* Access to tables in segments of doubling size (struct table in recording.h), for the process that writes them. */
#ifndef MALLOSCOPE_CORE_TABLE_H
#define MALLOSCOPE_CORE_TABLE_H

#include "core/arena.h"

struct table_location {
    uint32_t segment;
    uint64_t index; /* within the segment */
};

static inline struct table_location table_locate(const struct table *table, uint64_t entry) {
    uint64_t position = entry + table->first;
    uint32_t segment = (uint32_t)(__builtin_clzll(table->first) - __builtin_clzll(position));
    return (struct table_location){segment, position - ((uint64_t)table->first << segment)};
}

/* The address of an entry that table_append made. */
static inline void *table_entry(const struct recording *recording, struct table *table, uint64_t entry) {
    struct table_location location = table_locate(table, entry);
    /* Acquire: pairs with the release in table_segment. The arena piece that holds the segment is seen mapped. */
    uint64_t offset = atomic_load_explicit(&table->segment[location.segment], memory_order_acquire);
    return arena_at(recording, offset + location.index * table->entry_size);
}

/* Looks a segment's address up and keeps it in the map. Returns the address that entry 0 would have if the segment
 * reached back to it; 0 if the segment does not exist. */
__attribute__((noinline)) uintptr_t table_map_segment(
    const struct recording *recording, struct table *table, struct table_map *map, uint32_t segment);

/* table_entry in a few instructions, for a table whose `first` and entry size are constants. The map holds, for each
 * segment, the address that entry 0 would have if the segment reached back to it. */
static inline void *table_mapped(const struct recording *recording, struct table *table,
    struct table_map *map, uint32_t first, uint32_t entry_size, uint64_t entry) {
    uint32_t segment = (uint32_t)(63 - __builtin_clzll(entry + first)) - (uint32_t)__builtin_ctz(first);
    /* Acquire: pairs with the release in table_map_segment. On x86-64 it costs nothing. */
    uintptr_t origin = atomic_load_explicit(&map->origin[segment], memory_order_acquire);
    if (__builtin_expect(!origin, 0)) origin = table_map_segment(recording, table, map, segment);
    return (void *)(origin + entry * entry_size);
}

/* The offset of a segment, which is made if it does not exist. 0 if the arena is full. */
uint64_t table_segment(struct recording *recording, struct table *table, uint32_t segment);

/* Makes a zeroed entry. Returns its number, or UINT64_MAX if the arena is full or the table has `most` entries. */
uint64_t table_append(struct recording *recording, struct table *table, uint64_t most);

/* Makes `many` entries in a row, and returns the number of the first. `many` is a power of two, the same at each
 * call for a table, and at most `first`: so the entries lie in one segment. */
uint64_t table_append_many(struct recording *recording, struct table *table, uint64_t many, uint64_t most);

/* Raises a count of *_noted (struct recording) to `number` + 1. A smaller number may not have been noted yet, if
 * another thread is still filling its record. */
static inline void table_number_noted(_Atomic uint32_t *noted, uint64_t number) {
    /* Release: the record with this number was filled before it counts. */
    uint32_t seen = atomic_load_explicit(noted, memory_order_relaxed);
    while (seen <= number && !atomic_compare_exchange_weak_explicit(noted, &seen, (uint32_t)number + 1,
                                 memory_order_release, memory_order_relaxed)) {
    }
}

void table_start(struct table *table, uint32_t entry_size, uint32_t first);

#endif
