#include "core/name_table.h"

#include "base/limits.h"
#include "core/table.h"

#include <string.h>

#define INDEX_PLACES (2u * NAMES_MOST) /* at most half full, so that searches are short and end */

/* Finds a name's number by its text. Private to the process.
 *
 * A name is noted in three steps: the text is copied; its offset is stored in the record, by a release, for readers in
 * other processes; the number is put into the index, by a release. A thread that acquires the number, or a reader that
 * acquires the offset, sees the text. */
static struct {
    _Atomic bool in_use;
    _Atomic uint32_t number[INDEX_PLACES];
} name_index;

struct text {
    char bytes[NAME_LENGTH];
    size_t length;
    uint64_t hash;
};

/* Copies and hashes a name. A name that is too long is cut, but not inside a UTF-8 character. */
static void text_take(struct text *text, const char *name) {
    static const char more[] = "...";
    size_t length = strnlen(name, NAME_LENGTH);
    if (length == NAME_LENGTH) {
        length -= sizeof more - 1;
        while (length && ((unsigned char)name[length] & 0xc0) == 0x80) length--;
        memcpy(text->bytes, name, length);
        memcpy(text->bytes + length, more, sizeof more - 1);
        length += sizeof more - 1;
    } else {
        memcpy(text->bytes, name, length);
    }
    text->length = length;
    text->hash = length;
    for (size_t i = 0; i < length; i++)
        text->hash = (text->hash ^ (unsigned char)text->bytes[i]) * UINT64_C(0x100000001b3);
    text->hash = text->hash * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static struct name_record *record_of(struct recording *recording, uint32_t number) {
    return table_entry(recording, &recording->header->names, number);
}

static bool is_same(struct recording *recording, uint32_t number, const struct text *text) {
    /* Acquire: pairs with the release in `append`. The arena piece that holds the text is seen mapped. */
    uint64_t offset = atomic_load_explicit(&record_of(recording, number)->text, memory_order_acquire);
    const char *kept = arena_at(recording, offset);
    return strncmp(kept, text->bytes, text->length) == 0 && kept[text->length] == '\0';
}

static uint32_t append(struct recording *recording, const struct text *text) {
    /* Checked before the text is copied, since the arena takes nothing back. Relaxed: a guess, which table_append
     * checks. */
    uint64_t count = atomic_load_explicit(&recording->header->names.count, memory_order_relaxed);
    uint64_t offset = count < NAMES_MOST ? arena_text(recording, text->bytes, text->length) : 0;
    uint64_t number = offset ? table_append(recording, &recording->header->names, NAMES_MOST) : UINT64_MAX;
    if (number == UINT64_MAX) {
        /* Relaxed: a counter by which nothing else is ordered. */
        atomic_fetch_add_explicit(&recording->header->drops[DROP_NAME], 1, memory_order_relaxed);
        return NAME_NONE;
    }
    /* Release: a reader that acquires the offset sees the text. */
    atomic_store_explicit(&record_of(recording, (uint32_t)number)->text, offset, memory_order_release);
    table_number_noted(&recording->names_noted, number);
    return (uint32_t)number;
}

uint32_t name_table_note(struct recording *recording, const char *name) {
    struct text text;
    uint32_t added = NAME_NONE;
    text_take(&text, name);
    /* Relaxed: read by name_table_start alone, when no other thread uses the table. */
    atomic_store_explicit(&name_index.in_use, true, memory_order_relaxed);
    if (!text.length) return NAME_NONE;
    for (uint64_t place = text.hash;; place++) {
        _Atomic uint32_t *number = &name_index.number[place % INDEX_PLACES];
        /* Acquire, here and where the exchange fails: pairs with the release below, so the record is seen filled. */
        uint32_t found = atomic_load_explicit(number, memory_order_acquire);
        if (!found) {
            if (!added) added = append(recording, &text);
            if (!added) return NAME_NONE;
            /* Release: pairs with the acquire above in another thread. */
            if (atomic_compare_exchange_strong_explicit(
                    number, &found, added, memory_order_release, memory_order_acquire))
                return added;
            /* Another thread took the place. If it has the same name, its number is used and the record made here
             * is not. */
        }
        if (is_same(recording, found, &text)) return found;
    }
}

/* Relaxed: no other thread knows the recording yet. */
bool name_table_start(struct recording *recording) {
    if (name_index.in_use) memset(&name_index, 0, sizeof name_index);
    table_start(&recording->header->names, sizeof(struct name_record), 16);
    atomic_store_explicit(&recording->names_noted, 1, memory_order_relaxed);
    return table_append(recording, &recording->header->names, NAMES_MOST) == NAME_NONE;
}

/* parent->names_noted is in private memory, and keeps the value it had at the fork: relaxed. The parent's records
 * are in shared memory, and its threads may be filling them: acquire, as in is_same. */
bool name_table_inherit(struct recording *child, const struct recording *parent) {
    uint32_t count = atomic_load_explicit(&parent->names_noted, memory_order_relaxed);
    for (uint32_t number = 1; number < count; number++) {
        const struct name_record *name = table_entry(parent, &parent->header->names, number);
        uint64_t offset = atomic_load_explicit(&name->text, memory_order_acquire);
        if (offset && name_table_note(child, arena_at(parent, offset)) == number) continue;
        /* A name that two threads noted at the same time has two numbers, and the child's table holds it already. A
         * name that was just being noted has no text yet. In both cases an empty record keeps the numbers in step. */
        if (child->header->names.count == number && !append(child, &(struct text){.length = 0})) return false;
        if (child->header->names.count != number + 1) return false;
    }
    return true;
}
