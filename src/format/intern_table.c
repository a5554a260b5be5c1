#include "format/intern_table.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a with a final mix, since the table uses the low bits. */
static uint64_t hash_bytes(const unsigned char *bytes, size_t size) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    return hash;
}

static void place(struct intern_table *intern, uint32_t number) {
    uint32_t slot = intern->entries[number].hash & (intern->slot_count - 1);
    while (intern->slots[slot]) slot = (slot + 1) & (intern->slot_count - 1);
    intern->slots[slot] = number + 1;
}

/* Room for one entry more, with the slots at most half full. */
static bool make_room(struct intern_table *intern) {
    if (intern->count < intern->capacity) return true;
    if (intern->capacity > UINT32_MAX / 4) return false;

    uint32_t capacity = intern->capacity ? intern->capacity * 2 : 64;
    struct intern_table_entry *entries = reallocarray(intern->entries, capacity, sizeof *entries);
    if (!entries) return false;
    intern->entries = entries;

    uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (!slots) return false;
    free(intern->slots);
    intern->slots = slots;
    intern->slot_count = capacity * 2;
    intern->capacity = capacity;
    for (uint32_t i = 0; i < intern->count; i++) place(intern, i);
    return true;
}

uint32_t intern_table_add(struct intern_table *intern, const void *key, size_t size) {
    uint64_t hash = hash_bytes(key, size);

    if (intern->slot_count) {
        uint32_t slot = hash & (intern->slot_count - 1);
        for (; intern->slots[slot]; slot = (slot + 1) & (intern->slot_count - 1)) {
            const struct intern_table_entry *entry = &intern->entries[intern->slots[slot] - 1];
            if (entry->hash == hash && entry->size == size && memcmp(entry->key, key, size) == 0)
                return intern->slots[slot] - 1;
        }
    }

    char *copy = malloc(size + 1);
    if (!copy || !make_room(intern)) {
        free(copy);
        intern->failed = true;
        return 0;
    }
    memcpy(copy, key, size);
    copy[size] = '\0';
    intern->entries[intern->count] = (struct intern_table_entry){.hash = hash, .size = size, .key = copy};
    place(intern, intern->count);
    return intern->count++;
}

uint32_t intern_table_add_text(struct intern_table *intern, const char *text) {
    return intern_table_add(intern, text, strlen(text));
}

void intern_table_free(struct intern_table *intern) {
    for (uint32_t i = 0; i < intern->count; i++) free(intern->entries[i].key);
    free(intern->entries);
    free(intern->slots);
    *intern = (struct intern_table){0};
}
