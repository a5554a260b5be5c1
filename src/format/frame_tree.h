/* The call paths of a whole trace as one tree of names, in which a path has one number in all dumps of the trace.
 *
 *     root ─► main ─► load ─► parse
 *                  └► index
 *
 * Nodes are numbered from 1 as they come, parents before children. */
#ifndef MALLOSCOPE_FORMAT_FRAME_TREE_H
#define MALLOSCOPE_FORMAT_FRAME_TREE_H

#include "format/intern_table.h"
#include "view/call_tree.h"
#include "view/source_frames.h"

#define FRAME_TREE_ROOT     CALL_ROOT
#define FRAME_TREE_ANY_TYPE UINT32_MAX

/* A zeroed struct is a tree of the root alone. */
struct frame_tree {
    struct intern_table names; /* of functions and types; a type is the number of its name */
    struct call_tree calls;    /* a call's frame is the number of its name */
};

struct frame_node {
    uint32_t parent, name;
};

/* The child of `parent` with that name. It is added if this is the first. */
uint32_t frame_tree_add(struct frame_tree *tree, uint32_t parent, const char *name);
/* The node of a whole stack. */
uint32_t frame_tree_add_stack(struct frame_tree *tree, const struct source_frames *frames);
/* Of any node but the root. */
struct frame_node frame_tree_node(const struct frame_tree *tree, uint32_t node);
/* The number of a type. */
uint32_t frame_tree_type(struct frame_tree *tree, const char *name);
/* The text of the name of a node or a type. */
const char *frame_tree_text(const struct frame_tree *tree, uint32_t name);
void frame_tree_free(struct frame_tree *tree);

#endif
