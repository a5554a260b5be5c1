#include "base/interval_map.h"

#include "base/memory.h"

#include <stdlib.h>

/* The index of the last piece that begins at or before the address, or -1. */
static size_t piece_before(const struct interval_map *map, uint64_t address) {
    size_t low = 0, high = map->piece_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->pieces[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

uint32_t interval_map_find(const struct interval_map *map, uint64_t address) {
    size_t piece = piece_before(map, address);
    return piece == (size_t)-1 ? INTERVAL_NONE : map->pieces[piece].value;
}

void interval_map_add(struct interval_map *map, uint64_t low, uint64_t high, uint32_t value) {
    if (low >= high) return;
    if (map->interval_count == map->interval_room) {
        map->interval_room = map->interval_room ? 2 * map->interval_room : 64;
        map->intervals = memory_reallocate(map->intervals, map->interval_room * sizeof *map->intervals);
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

/* Closes the open intervals that end at or before `address`, the innermost first. Where one ends, a piece of the
 * interval around it begins. `open` is a stack of indices of intervals with `depth` elements. Returns how many
 * stay open. */
static size_t close_until(struct interval_map *map, const size_t *open, size_t depth, uint64_t address) {
    while (depth && map->intervals[open[depth - 1]].high <= address) {
        uint64_t end = map->intervals[open[depth - 1]].high;
        while (depth && map->intervals[open[depth - 1]].high <= end) depth--;
        add_piece(map, end, depth ? map->intervals[open[depth - 1]].value : INTERVAL_NONE);
    }
    return depth;
}

static void forget_intervals(struct interval_map *map) {
    free(map->intervals);
    map->intervals = NULL;
    map->interval_count = map->interval_room = 0;
}

void interval_map_seal(struct interval_map *map) {
    size_t count = map->interval_count;
    if (!count) return;
    qsort(map->intervals, count, sizeof *map->intervals, compare_intervals);
    /* Each interval begins one piece, and another piece begins where the interval ends. */
    map->pieces = memory_allocate(2 * count * sizeof *map->pieces);
    size_t *open = memory_allocate(count * sizeof *open), depth = 0;
    for (size_t i = 0; i < count; i++) {
        depth = close_until(map, open, depth, map->intervals[i].low);
        add_piece(map, map->intervals[i].low, map->intervals[i].value);
        open[depth++] = i;
    }
    close_until(map, open, depth, UINT64_MAX);
    free(open);
    forget_intervals(map);
}

static int compare_addresses(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static int compare_values_down(const void *left, const void *right) {
    const struct interval *a = left, *b = right;
    return (a->value < b->value) - (a->value > b->value);
}

/* Makes pieces, without a value, that begin at each address where an interval begins or ends. */
static void cut_pieces(struct interval_map *map) {
    size_t count = 0;
    uint64_t *cuts = memory_allocate(2 * map->interval_count * sizeof *cuts);
    for (size_t i = 0; i < map->interval_count; i++) {
        cuts[count++] = map->intervals[i].low;
        cuts[count++] = map->intervals[i].high;
    }
    qsort(cuts, count, sizeof *cuts, compare_addresses);
    map->pieces = memory_allocate(count * sizeof *map->pieces);
    for (size_t i = 0; i < count; i++) add_piece(map, cuts[i], INTERVAL_NONE);
    free(cuts);
}

/* The first piece from `piece` on that has no value yet. `next[i]` is i for such a piece, and a later piece for
 * one that has a value. */
static size_t first_free(size_t *next, size_t piece) {
    while (next[piece] != piece) piece = next[piece] = next[next[piece]];
    return piece;
}

void interval_map_seal_latest(struct interval_map *map) {
    if (!map->interval_count) return;
    cut_pieces(map);
    size_t *next = memory_allocate(map->piece_count * sizeof *next);
    for (size_t i = 0; i < map->piece_count; i++) next[i] = i;
    qsort(map->intervals, map->interval_count, sizeof *map->intervals, compare_values_down);
    for (size_t i = 0; i < map->interval_count; i++) {
        const struct interval *interval = &map->intervals[i];
        size_t piece = first_free(next, piece_before(map, interval->low));
        for (; map->pieces[piece].low < interval->high; piece = first_free(next, piece)) {
            map->pieces[piece].value = interval->value;
            next[piece] =
                piece + 1; /* exists: the last piece begins where the last interval ends and gets no value */
        }
    }
    free(next);
    forget_intervals(map);
}

void interval_map_clear(struct interval_map *map) {
    free(map->intervals);
    free(map->pieces);
    *map = (struct interval_map){0};
}
