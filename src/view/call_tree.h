/* A tree of calls: each distinct path of frames from the root has one node, a call of four words.
 *
 * The tree is made for many millions of look-ups. Most calls have few callees, and stacks that follow each other
 * meet the same ones. The first CALLEES_LISTED callees of a call are therefore a list in the array of calls itself.
 * Only a call with more callees than that has the others in an index.
 *
 * Frames are numbers of the caller's: of a frame_list (view/frame_list.h) or of names (format/frame_tree.h). */
#ifndef MALLOSCOPE_VIEW_CALL_TREE_H
#define MALLOSCOPE_VIEW_CALL_TREE_H

#include "base/hash_index.h"

#include <stdint.h>

#define CALL_ROOT 0u
#define CALL_NONE UINT32_MAX /* the root's parent and frame */

struct call {
    uint32_t parent, frame;
    uint32_t first_callee; /* begins the list of callees; 0: there are none */
    uint32_t next_sibling; /* the next call in the list of the parent; 0: this is the last */
};

/* Zeroed, then begun. A caller's number is smaller than those of its callees. */
struct call_tree {
    struct call *calls; /* by number; the root is CALL_ROOT */
    uint32_t count, capacity;
    struct hash_index index; /* callees that are in no list */
};

/* Makes the root, unless there is one. */
void call_tree_begin(struct call_tree *tree);

/* The number of the call of `frame` by `parent`. It is added if this is the first. */
uint32_t call_tree_callee(struct call_tree *tree, uint32_t parent, uint32_t frame);

void call_tree_free(struct call_tree *tree);

#endif
