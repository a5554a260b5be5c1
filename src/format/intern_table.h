/* Numbers for keys: the first distinct key gets 0, the next 1, and a key that was added before gets its number
 * again.
 *
 * A key is any run of bytes. Formats number what they list once and refer to: strings, frames, locations. */
#ifndef MALLOSCOPE_FORMAT_INTERN_TABLE_H
#define MALLOSCOPE_FORMAT_INTERN_TABLE_H

#include "base/hash_index.h"

#include <stddef.h>
#include <stdint.h>

struct intern_table_entry {
    size_t size;
    char *key; /* a copy, followed by a NUL that is not part of it */
};

/* A zeroed struct is an empty table. */
struct intern_table {
    struct intern_table_entry *entries; /* by number */
    uint32_t count, capacity;
    struct hash_index index;
};

uint32_t intern_table_add(struct intern_table *table, const void *key, size_t size);
uint32_t intern_table_add_text(struct intern_table *table, const char *text);
void intern_table_free(struct intern_table *table);

#endif
