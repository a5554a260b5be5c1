/* A heap dump: what is live in a heap at one moment, broken down by call path and by type.
 *
 *     path                  type     self   total        self: allocated at the path itself
 *     root                  any         0     100        total: there and at all paths below
 *     main                  any        10     100
 *     main ─► load          node       60      60
 *     …
 *
 * Paths are nodes of a frame_tree, which all dumps of a trace share. A path whose total is below a threshold is
 * left out together with everything under it, but its bytes stay part of every path above. */
#ifndef MALLOSCOPE_FORMAT_HEAP_DUMP_H
#define MALLOSCOPE_FORMAT_HEAP_DUMP_H

#include "format/frame_tree.h"

/* Chrome's own heap profiler leaves out what is smaller than this. */
#define HEAP_DUMP_THRESHOLD 1024

struct heap_amount {
    uint64_t bytes, objects;
};

/* What a path has of one type, or of any type. */
struct heap_cell {
    uint32_t node, type;
    struct heap_amount self, total;
};

/* A zeroed struct is an empty dump. */
struct heap_dump {
    struct intern_table keys; /* node and type of each cell, in the order of `cells` */
    struct heap_cell *cells;  /* cell 0 is the root's with any type: the whole heap */
    size_t count, capacity;
};

/* Adds what was allocated at a path. A dump is complete after at least one call, be it with an amount of 0. */
void heap_dump_add(struct heap_dump *dump, const struct frame_tree *tree, uint32_t node, uint32_t type,
    struct heap_amount amount);
/* Whether the cell is written: its total reaches the threshold, or it is the whole heap. */
bool heap_dump_keeps(const struct heap_cell *cell, uint64_t threshold);
/* Makes a dump of the cells that have a type and something allocated at the path itself. What lies on paths below
 * the threshold goes to a path "[long tail]" under the innermost path that reaches it; these are added to the tree.
 * The caller frees `ret_folded`. */
void heap_dump_fold(
    struct heap_dump *dump, struct frame_tree *tree, uint64_t threshold, struct heap_dump *ret_folded);
void heap_dump_free(struct heap_dump *dump);

#endif
