/* Heap dumps: what is live in a heap at one moment, broken down by call path and by type, without the long
 * tail.
 *
 * The call paths of a whole trace are one tree of names, so that a path has one number in all of its dumps:
 *
 *     root ─► main ─► load ─► parse          a dump holds, for each path and type that it has met,
 *                  └► index                  what was allocated at the path and what below it
 *
 * What takes less than a threshold is not worth a line. A path below the threshold is left out together with
 * everything under it, and is still part of every path above. */
#ifndef MALLOSCOPE_FORMAT_HEAP_DUMP_H
#define MALLOSCOPE_FORMAT_HEAP_DUMP_H

#include "format/intern_table.h"
#include "view/source_frames.h"

/* Chrome's own heap profiler leaves out what is smaller than this. */
#define HEAP_DUMP_THRESHOLD 1024

#define FRAME_TREE_ROOT     0
#define FRAME_TREE_ANY_TYPE UINT32_MAX

/* Zeroed, it is a tree of the root alone. Nodes are numbered from 1 as they come, parents before children. */
struct frame_tree {
    struct intern_table names; /* of functions and types; a type is the number of its name */
    struct intern_table nodes;
};

struct frame_node {
    uint32_t parent, name;
};

uint32_t frame_tree_add(struct frame_tree *tree, uint32_t parent, const char *name);
/* The node of a whole stack; `frames` are leaf first. */
uint32_t frame_tree_add_stack(struct frame_tree *tree, const struct source_frames *frames);
/* Of any node but the root. */
struct frame_node frame_tree_node(const struct frame_tree *tree, uint32_t node);
uint32_t frame_tree_type(struct frame_tree *tree, const char *name);
const char *frame_tree_text(const struct frame_tree *tree, uint32_t name);
/* Whether a node or a name could not be added for lack of memory. */
bool frame_tree_failed(const struct frame_tree *tree);
void frame_tree_free(struct frame_tree *tree);

struct heap_amount {
    uint64_t bytes, objects;
};

/* A path and a type, or any type. */
struct heap_cell {
    uint32_t node, type;
    struct heap_amount self, total; /* at the path itself; there and at all paths below */
};

/* Zeroed, it is an empty dump. */
struct heap_dump {
    struct intern_table keys;
    struct heap_cell *cells; /* the first is the root's with any type: the whole heap */
    size_t count, capacity;
    bool failed; /* out of memory */
};

/* To be called at least once, be it with nothing. */
void heap_dump_add(struct heap_dump *dump, const struct frame_tree *tree, uint32_t node, uint32_t type,
    struct heap_amount amount);
/* Whether the cell is worth a line. The whole heap always is. */
bool heap_dump_keeps(const struct heap_cell *cell, uint64_t threshold);
/* What is allocated at each path: the cells with a type that have something of their own. What lies on paths
 * below the threshold goes to a path "[long tail]" under the last one that is not, which is added to the
 * tree. The caller frees `ret_folded`. */
void heap_dump_fold(
    struct heap_dump *dump, struct frame_tree *tree, uint64_t threshold, struct heap_dump *ret_folded);
void heap_dump_free(struct heap_dump *dump);

#endif
