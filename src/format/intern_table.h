/* Numbers for things: the first distinct key gets 0, the next 1, and an equal key gets its number again.
 *
 * A key is any run of bytes. Formats with shared tables (strings, frames, locations) number them with this.
 * Running out of memory is remembered in `failed` and gives 0, so that a writer checks once, at the end. */
#ifndef MALLOSCOPE_FORMAT_INTERN_TABLE_H
#define MALLOSCOPE_FORMAT_INTERN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern_table_entry {
    uint64_t hash;
    size_t size;
    char *key; /* followed by a NUL that is not part of it */
};

struct intern_table {
    struct intern_table_entry *entries; /* by number */
    uint32_t count, capacity;
    uint32_t *slots; /* number + 1 at the hash's place, open addressing, 0 = empty */
    uint32_t slot_count;
    bool failed;
};

/* A zeroed struct is an empty one. */
uint32_t intern_table_add(struct intern_table *intern, const void *key, size_t size);
uint32_t intern_table_add_text(struct intern_table *intern, const char *text);
void intern_table_free(struct intern_table *intern);

#endif
