/* The parts of a memory dump event besides heap dumps: the sizes of the allocators, and what the process has
 * mapped. */
#ifndef MALLOSCOPE_FORMAT_CHROME_MEMORY_H
#define MALLOSCOPE_FORMAT_CHROME_MEMORY_H

#include "format/chrome_heaps.h"
#include "model/model.h"

/* The name of a heap as the name of an allocator in the trace. Slashes are replaced, since they would make it a
 * part of another allocator; names that the trace uses itself get a suffix. The caller frees it. */
char *chrome_memory_allocator_name(const char *heap);

/* Writes the keys `allocators`, `allocators_graph` and `process_mmaps` into the object that is open. `next_guid`
 * counts allocators through the whole trace. */
void chrome_memory_write(struct json *json, const struct model *model, uint32_t process,
    const struct chrome_heap *heaps, size_t count, uint64_t *next_guid);

#endif
