/* From an address to what covers it, where ranges may lie inside each other.
 *
 *     added      0 ├───────────────────────────────┤         a function
 *                1       ├──────────────┤                    a call inlined into it
 *                2            ├───┤                          a call inlined into that
 *     sealed     0 ──────1────2───1─────0──────────── none   disjoint pieces, found by bisection
 */
#ifndef MALLOSCOPE_BASE_INTERVAL_MAP_H
#define MALLOSCOPE_BASE_INTERVAL_MAP_H

#include <stddef.h>
#include <stdint.h>

#define INTERVAL_NONE UINT32_MAX

struct interval {
    uint64_t low, high; /* [low, high); empty intervals are ignored */
    uint32_t value;
};

struct interval_piece {
    uint64_t low; /* reaches to the next piece */
    uint32_t value;
};

/* All zero is an empty map. */
struct interval_map {
    struct interval *intervals; /* until it is sealed */
    size_t interval_count, interval_room;
    struct interval_piece *pieces;
    size_t piece_count;
};

void interval_map_add(struct interval_map *map, uint64_t low, uint64_t high, uint32_t value);

/* Ends the adding. Where intervals overlap the one that starts last wins, of those the shortest, of equal
 * ones the one with the largest value. */
void interval_map_seal(struct interval_map *map);

/* The same for intervals that replaced each other: where they overlap the one with the largest value wins. */
void interval_map_seal_latest(struct interval_map *map);

/* The value at `address` of a sealed map, or INTERVAL_NONE. */
uint32_t interval_map_find(const struct interval_map *map, uint64_t address);

void interval_map_clear(struct interval_map *map);

#endif
