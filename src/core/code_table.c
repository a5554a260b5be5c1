#include "core/code_table.h"

#include "base/limits.h"
#include "core/table.h"

#include <string.h>

#define INDEX_PLACES (2u * CODE_OBJECTS_MOST) /* the index is at most half full, so that searches are short */
#define PROBE_MAX    64

/* Finds the number of a code object by its key. Private to the process.
 *
 * A code object is noted in three steps: the record is filled; `complete` is set, by a release, for readers in
 * other processes; the number is put beside the key, by a release. A thread that acquires the number sees the
 * record filled. A thread that finds the key without a number takes the code object for unknown, and notes it once
 * more. */
static struct {
    _Atomic bool in_use;
    struct place {
        _Atomic uint64_t key; /* 0 = empty */
        _Atomic uint32_t number;
    } place[INDEX_PLACES];
} code_index;

static struct place *place_of(uint64_t key, unsigned probe) {
    return &code_index.place[((key * UINT64_C(0x9e3779b97f4a7c15) >> 32) + probe) % INDEX_PLACES];
}

uint32_t code_table_find(uint64_t key) {
    for (unsigned probe = 0; probe < PROBE_MAX; probe++) {
        struct place *place = place_of(key, probe);
        /* Relaxed: the key only leads to the number, which is acquired. */
        uint64_t seen = atomic_load_explicit(&place->key, memory_order_relaxed);
        if (seen == key) return atomic_load_explicit(&place->number, memory_order_acquire);
        if (!seen) break;
    }
    return CODE_NONE;
}

static void index_add(uint64_t key, uint32_t number) {
    for (unsigned probe = 0; probe < PROBE_MAX; probe++) {
        struct place *place = place_of(key, probe);
        uint64_t empty = 0;
        /* Relaxed: the exchange claims a place for the key, and nothing is read on the strength of it. If two
         * threads have the same key, the number of the later one stays; both numbers are right. */
        if (!atomic_compare_exchange_strong_explicit(
                &place->key, &empty, key, memory_order_relaxed, memory_order_relaxed) &&
            empty != key)
            continue;
        /* Release: pairs with the acquire in code_table_find. */
        atomic_store_explicit(&place->number, number, memory_order_release);
        return;
    }
}

static uint32_t append(struct recording *recording, const struct code *code) {
    struct table *table = &recording->header->code_objects;
    /* Checked before the text is copied, since the arena takes nothing back. Relaxed: a guess, which table_append
     * checks. */
    bool has_room = atomic_load_explicit(&table->count, memory_order_relaxed) < CODE_OBJECTS_MOST;
    uint64_t name = has_room ? arena_text(recording, code->name, strlen(code->name)) : 0;
    uint64_t number = name ? table_append(recording, table, CODE_OBJECTS_MOST) : UINT64_MAX;
    if (number == UINT64_MAX) {
        /* Relaxed: a counter by which nothing else is ordered. */
        atomic_fetch_add_explicit(&recording->header->drops[DROP_NAME], 1, memory_order_relaxed);
        return CODE_NONE;
    }
    struct code_record *record = table_entry(recording, table, number);
    record->name = name;
    record->file = code->file;
    record->first_line = code->first_line;
    /* Release: a reader that acquires `complete` sees the record filled. */
    atomic_store_explicit(&record->complete, 1, memory_order_release);
    table_number_noted(&recording->code_objects_noted, number);
    return (uint32_t)number;
}

uint32_t code_table_note(struct recording *recording, uint64_t key, const struct code *code) {
    /* Relaxed: read by code_table_start alone, when no other thread uses the table. */
    atomic_store_explicit(&code_index.in_use, true, memory_order_relaxed);
    uint32_t number = append(recording, code);
    if (number != CODE_NONE) index_add(key, number);
    return number;
}

/* Relaxed: no other thread knows the recording yet. */
bool code_table_start(struct recording *recording) {
    if (code_index.in_use) memset(&code_index, 0, sizeof code_index);
    table_start(&recording->header->code_objects, sizeof(struct code_record), 16);
    atomic_store_explicit(&recording->code_objects_noted, 1, memory_order_relaxed);
    return table_append(recording, &recording->header->code_objects, CODE_OBJECTS_MOST) == CODE_NONE;
}

/* The index is not inherited (code_table_start has emptied it): code objects that the child meets are noted anew. */
bool code_table_inherit(struct recording *child, const struct recording *parent) {
    /* Relaxed: the count is in private memory, and keeps the value it had at the fork. */
    uint32_t count = atomic_load_explicit(&parent->code_objects_noted, memory_order_relaxed);
    for (uint32_t number = 1; number < count; number++) {
        const struct code_record *record = table_entry(parent, &parent->header->code_objects, number);
        struct code code = {.name = ""};
        /* Acquire: a thread of the parent may be filling this record, which is in shared memory. */
        if (atomic_load_explicit(&record->complete, memory_order_acquire))
            code = (struct code){.name = arena_at(parent, record->name),
                .file = record->file,
                .first_line = record->first_line};
        if (append(child, &code) != number) return false;
    }
    return true;
}
