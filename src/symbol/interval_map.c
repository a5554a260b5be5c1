#include "symbol/interval_map.h"

#include <libiberty/libiberty.h>
#include <stdlib.h>

uint32_t interval_map_find(const struct interval_map *map, uint64_t address) {
    size_t low = 0, high = map->piece_count; /* the last piece that starts at or before the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->pieces[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? map->pieces[low - 1].value : INTERVAL_NONE;
}

void interval_map_add(struct interval_map *map, uint64_t low, uint64_t high, uint32_t value) {
    if (low >= high) return;
    if (map->interval_count == map->interval_room) {
        map->interval_room = map->interval_room ? 2 * map->interval_room : 64;
        map->intervals = xrealloc(map->intervals, map->interval_room * sizeof *map->intervals);
    }
    map->intervals[map->interval_count++] = (struct interval){low, high, value};
}

static int compare_intervals(const void *left, const void *right) {
    const struct interval *a = left, *b = right;
    if (a->low != b->low) return a->low < b->low ? -1 : 1;
    if (a->high != b->high) return a->high > b->high ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

static void add_piece(struct interval_map *map, uint64_t low, uint32_t value) {
    struct interval_piece *last = map->piece_count ? &map->pieces[map->piece_count - 1] : NULL;
    if (last && last->low == low)
        last->value = value;
    else
        map->pieces[map->piece_count++] = (struct interval_piece){low, value};
}

/* Ends the open intervals that end by `address`, innermost first, and goes on with those around them.
 * `open` holds indices of intervals, the last one opened on top. Returns how many stay open. */
static size_t close_until(struct interval_map *map, const size_t *open, size_t depth, uint64_t address) {
    while (depth && map->intervals[open[depth - 1]].high <= address) {
        uint64_t end = map->intervals[open[depth - 1]].high;
        while (depth && map->intervals[open[depth - 1]].high <= end) depth--;
        add_piece(map, end, depth ? map->intervals[open[depth - 1]].value : INTERVAL_NONE);
    }
    return depth;
}

void interval_map_seal(struct interval_map *map) {
    size_t count = map->interval_count;
    if (!count) return;
    qsort(map->intervals, count, sizeof *map->intervals, compare_intervals);
    map->pieces = xmalloc(2 * count * sizeof *map->pieces); /* each interval starts one piece and ends one */
    size_t *open = xmalloc(count * sizeof *open), depth = 0;
    for (size_t i = 0; i < count; i++) {
        depth = close_until(map, open, depth, map->intervals[i].low);
        add_piece(map, map->intervals[i].low, map->intervals[i].value);
        open[depth++] = i;
    }
    close_until(map, open, depth, UINT64_MAX);
    free(open);
    free(map->intervals);
    map->intervals = NULL;
    map->interval_count = map->interval_room = 0;
}

void interval_map_clear(struct interval_map *map) {
    free(map->intervals);
    free(map->pieces);
    *map = (struct interval_map){0};
}
