#include "format/intern_table.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a. */
static uint64_t hash_bytes(const void *key, size_t size) {
    const unsigned char *bytes = key;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

struct search {
    const struct intern_table *table;
    const void *key;
    size_t size;
};

static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    const struct intern_table_entry *entry = &search->table->entries[number];
    return entry->size == search->size && memcmp(entry->key, search->key, search->size) == 0;
}

uint32_t intern_table_add(struct intern_table *table, const void *key, size_t size) {
    uint64_t hash = hash_bytes(key, size);
    uint32_t known = hash_index_find(&table->index, hash, is_equal, &(struct search){table, key, size});
    if (known != HASH_INDEX_NONE) return known;

    if (table->count == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 64;
        table->entries = memory_reallocate(table->entries, table->capacity * sizeof *table->entries);
    }
    char *copy = memory_allocate(size + 1);
    memcpy(copy, key, size);
    table->entries[table->count] = (struct intern_table_entry){.size = size, .key = copy};
    hash_index_add(&table->index, hash, table->count);
    return table->count++;
}

uint32_t intern_table_add_text(struct intern_table *table, const char *text) {
    return intern_table_add(table, text, strlen(text));
}

void intern_table_free(struct intern_table *table) {
    for (uint32_t i = 0; i < table->count; i++) free(table->entries[i].key);
    free(table->entries);
    hash_index_free(&table->index);
    *table = (struct intern_table){0};
}
