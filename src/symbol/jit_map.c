#include "symbol/jit_map.h"

#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *jit_map_find(const struct jit_map *map, uint64_t address) {
    uint32_t index = interval_map_find(&map->by_address, address);
    return index == INTERVAL_NONE ? NULL : map->names[index];
}

/* Reads a hexadecimal number, with or without "0x", and the blanks after it. */
static bool take_number(char **text, uint64_t *ret_number) {
    char *end;
    if (!isxdigit((unsigned char)**text)) return false;
    errno = 0;
    *ret_number = strtoull(*text, &end, 16);
    if (errno || (*end != ' ' && *end != '\t')) return false;
    *text = end + strspn(end, " \t");
    return true;
}

static bool read_line(struct jit_map *map, char *line) {
    uint64_t start, size;
    if (!take_number(&line, &start) || !take_number(&line, &size)) return false;
    if (!*line || !size || start + size < start || map->count == JIT_MAP_LINES_MOST) return false;
    line[strcspn(line, "\r")] = 0;
    if (map->count == map->room) {
        map->room = map->room ? 2 * map->room : 1024;
        map->names = memory_reallocate(map->names, map->room * sizeof *map->names);
    }
    interval_map_add(&map->by_address, start, start + size, (uint32_t)map->count);
    map->names[map->count++] = line;
    return true;
}

void jit_map_read(struct jit_map *map, char *text, size_t size) {
    text[size] = 0;
    for (char *end; (end = memchr(text, '\n', size)); text = end + 1) {
        size -= (size_t)(end + 1 - text);
        *end = 0;
        if (*text && !read_line(map, text)) map->nonsense++;
    }
    interval_map_seal_latest(&map->by_address);
}

void jit_map_clear(struct jit_map *map) {
    interval_map_clear(&map->by_address);
    free(map->names);
    *map = (struct jit_map){0};
}
