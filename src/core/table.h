/* Access to the tables in doubling segments (struct table, recording.h) for their writer. */
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

/* An entry that table_append gave out. */
static inline void *table_entry(const struct recording *recording, struct table *table, uint64_t entry) {
    struct table_location location = table_locate(table, entry);
    /* Acquire: the piece that holds the segment is seen mapped. */
    uint64_t offset = atomic_load_explicit(&table->segment[location.segment], memory_order_acquire);
    return arena_at(recording, offset + location.index * table->entry_size);
}

__attribute__((noinline)) uintptr_t table_map_segment(
    const struct recording *recording, struct table *table, struct table_map *map, uint32_t segment);

/* The same for a table whose `first` and entry size the compiler knows, in a few instructions: the map holds,
 * for each segment, where entry 0 would be if the segment reached back to it. */
static inline void *table_mapped(const struct recording *recording, struct table *table,
    struct table_map *map, uint32_t first, uint32_t entry_size, uint64_t entry) {
    uint32_t segment = (uint32_t)(63 - __builtin_clzll(entry + first)) - (uint32_t)__builtin_ctz(first);
    /* Acquire: goes with the release in table_map_segment; on x86-64 it costs nothing. */
    uintptr_t origin = atomic_load_explicit(&map->origin[segment], memory_order_acquire);
    if (__builtin_expect(!origin, 0)) origin = table_map_segment(recording, table, map, segment);
    return (void *)(origin + entry * entry_size);
}

/* Makes segment `segment` if it is not there. Its offset, or 0 when the arena is full. */
uint64_t table_segment(struct recording *recording, struct table *table, uint32_t segment);

/* A new zeroed entry. Its number, or UINT64_MAX when the arena or the limit `most` is reached. */
uint64_t table_append(struct recording *recording, struct table *table, uint64_t most);

/* The same for `many` entries in a row: a power of two, the same at each call, and at most `first`. */
uint64_t table_append_many(struct recording *recording, struct table *table, uint64_t many, uint64_t most);

/* Raises a count of numbers that are in use (arena.h), of which one that was taken earlier may not be yet. */
static inline void table_number_noted(_Atomic uint32_t *noted, uint64_t number) {
    /* Release: what has the number was filled before it counts. */
    uint32_t seen = atomic_load_explicit(noted, memory_order_relaxed);
    while (seen <= number && !atomic_compare_exchange_weak_explicit(noted, &seen, (uint32_t)number + 1,
                                 memory_order_release, memory_order_relaxed)) {
    }
}

void table_start(struct table *table, uint32_t entry_size, uint32_t first);

#endif
