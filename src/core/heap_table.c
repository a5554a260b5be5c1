#include "core/heap_table.h"

bool heap_table_start(struct recording *recording) {
    table_start(&recording->header->heaps, sizeof(struct heap_record), HEAPS_FIRST);
    return heap_table_note(recording, 0, recording->header->rate, HEAP_OF_MALLOC) == 0;
}

uint32_t heap_table_note(struct recording *recording, uint32_t name, uint64_t rate, enum heap_kind kind) {
    uint64_t number = table_append(recording, &recording->header->heaps, HEAPS_MOST);
    if (number == UINT64_MAX) return HEAP_NONE;
    struct heap_record *heap = table_entry(recording, &recording->header->heaps, number);
    heap->name = name;
    heap->rate = rate;
    heap->kind = kind;
    /* Release: a reader in another process that acquires `complete` sees the record filled. Threads of this process
     * get the number from this function or from a thread that did. */
    atomic_store_explicit(&heap->complete, 1, memory_order_release);
    table_number_noted(&recording->heaps_noted, number);
    return (uint32_t)number;
}

/* Relaxed: the count is in private memory, and keeps the value it had at the fork. A thread of the parent may have been
 * filling a record below it; nothing in the child has that record's number. */
bool heap_table_inherit(struct recording *child, const struct recording *parent) {
    uint32_t count = atomic_load_explicit(&parent->heaps_noted, memory_order_relaxed);
    for (uint32_t number = 1; number < count; number++) {
        const struct heap_record *heap = table_entry(parent, &parent->header->heaps, number);
        if (heap_table_note(child, heap->name, heap->rate, heap->kind) != number) return false;
    }
    return true;
}
