/* A map of the code that a JIT compiler has generated. It is a text with a line for each piece of code:
 *
 *     START SIZE NAME        3ef414c0 398 LazyCompile:*parse /app/main.js:12
 *
 * The numbers are hexadecimal. JIT compilers write it as /tmp/perf-PID.map, for perf. They use memory again:
 * where lines overlap, the later line counts. */
#ifndef MALLOSCOPE_SYMBOL_JIT_MAP_H
#define MALLOSCOPE_SYMBOL_JIT_MAP_H

#include "base/interval_map.h"

#include <stddef.h>
#include <stdint.h>

#define JIT_MAP_LINES_MOST (1u << 22) /* the lines after these are left out */

/* All zero is an empty map. */
struct jit_map {
    const char **names;
    size_t count, room;
    size_t nonsense; /* lines that were left out, but for a last line without end: it is being written */
    struct interval_map by_address;
};

/* Reads `size` bytes of text. The byte `text[size]` is overwritten, too. The text must stay as long as the map,
 * because names point into it. */
void jit_map_read(struct jit_map *map, char *text, size_t size);
void jit_map_clear(struct jit_map *map);

/* The name of the code at `address`, or NULL. */
const char *jit_map_find(const struct jit_map *map, uint64_t address);

#endif
