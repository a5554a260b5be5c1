/* What a JIT compiler says about the code it made: a text of lines
 *
 *     START SIZE NAME        3ef414c0 398 LazyCompile:*parse /app/main.js:12
 *
 * with numbers in hex, written for perf as /tmp/perf-PID.map. Memory is used again: where lines overlap the
 * later one holds. */
#ifndef MALLOSCOPE_SYMBOL_JIT_MAP_H
#define MALLOSCOPE_SYMBOL_JIT_MAP_H

#include "base/interval_map.h"

#include <stddef.h>
#include <stdint.h>

/* All zero is an empty map. */
struct jit_map {
    const char **names;
    size_t count, room;
    size_t nonsense; /* lines that were left out; a last line that is not ended is being written */
    struct interval_map by_address;
};

/* Reads `size` bytes of text, of which `text[size]` may be written as well, and must stay: names point into
 * it. */
void jit_map_read(struct jit_map *map, char *text, size_t size);
void jit_map_clear(struct jit_map *map);

/* The name of the code at `address`, or NULL. */
const char *jit_map_find(const struct jit_map *map, uint64_t address);

#endif
