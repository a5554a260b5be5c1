#include "core/table.h"

void table_start(struct table *table, uint32_t entry_size, uint32_t first) {
    table->entry_size = entry_size;
    table->first = first;
}

uintptr_t table_map_segment(
    const struct recording *recording, struct table *table, struct table_map *map, uint32_t segment) {
    /* Acquire: pairs with the release in table_segment. The arena piece that holds the segment is seen mapped. */
    uint64_t offset = atomic_load_explicit(&table->segment[segment], memory_order_acquire);
    if (!offset) return 0; /* no such segment: the entry's number is damaged */
    uint64_t before = ((uint64_t)table->first << segment) - table->first;
    uintptr_t origin = (uintptr_t)arena_at(recording, offset) - before * table->entry_size;
    /* Release: pairs with the acquire in table_mapped, and passes on what the acquire above has seen. */
    atomic_store_explicit(&map->origin[segment], origin, memory_order_release);
    return origin;
}

uint64_t table_segment(struct recording *recording, struct table *table, uint32_t segment) {
    if (segment >= SEGMENTS_MAX) return 0;
    /* Acquire, here and where the exchange fails: pairs with the release below. The arena piece that holds the
     * segment is seen mapped. */
    uint64_t offset = atomic_load_explicit(&table->segment[segment], memory_order_acquire);
    if (offset) return offset;

    /* Segments of a page and more begin at a page, smaller ones share pages. */
    uint64_t size = ((uint64_t)table->first << segment) * table->entry_size;
    uint64_t made = arena_allocate(recording, size, size < PAGE_SIZE_MIN ? 64 : PAGE_SIZE_MIN);
    if (!made) return 0;
    /* If two threads make the same segment at once, the space of the one whose exchange fails stays unused.
     * Release: the space has been reserved and mapped before another thread can find it. */
    if (atomic_compare_exchange_strong_explicit(
            &table->segment[segment], &offset, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    return offset;
}

uint64_t table_append_many(struct recording *recording, struct table *table, uint64_t many, uint64_t most) {
    /* Relaxed: a guess, which the exchange checks. Release in the exchange: a thread or reader that acquires the
     * count sees the segments that hold so many entries. The content of an entry is published by each table in its
     * own way. */
    uint64_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    do {
        if (count >= most || !table_segment(recording, table, table_locate(table, count).segment))
            return UINT64_MAX;
    } while (!atomic_compare_exchange_weak_explicit(
        &table->count, &count, count + many, memory_order_acq_rel, memory_order_relaxed));
    return count;
}

uint64_t table_append(struct recording *recording, struct table *table, uint64_t most) {
    return table_append_many(recording, table, 1, most);
}
