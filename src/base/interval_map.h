/* A map from addresses to values, made of address ranges that may contain or overlap each other.
 *
 *     added      0 ├───────────────────────────────┤         a function
 *                1       ├──────────────┤                    a call inlined into it
 *                2            ├───┤                          a call inlined into that
 *     sealed     0 ──────1────2───1─────0──────────── none   disjoint pieces, found by binary search
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
    uint64_t low; /* the piece ends where the next one begins */
    uint32_t value;
};

/* All zero is an empty map. */
struct interval_map {
    struct interval *intervals; /* NULL once the map is sealed */
    size_t interval_count, interval_room;
    struct interval_piece *pieces;
    size_t piece_count;
};

void interval_map_add(struct interval_map *map, uint64_t low, uint64_t high, uint32_t value);

/* Ends the adding, for intervals that lie inside each other. Where intervals overlap, the one that begins last
 * counts; of several that begin there, the shortest; of equal ones, the one with the largest value. */
void interval_map_seal(struct interval_map *map);

/* Ends the adding, for intervals that replaced each other in time. Where intervals overlap, the one with the
 * largest value counts. */
void interval_map_seal_latest(struct interval_map *map);

/* The value at `address` of a sealed map, or INTERVAL_NONE. */
uint32_t interval_map_find(const struct interval_map *map, uint64_t address);

void interval_map_clear(struct interval_map *map);

#endif
