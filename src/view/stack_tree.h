/* The call tree of all stacks of a recording, or of two recordings that are compared.
 *
 * Branches go from the start of the program down to the site (view.h), and on to what the program named inside of
 * the site: scopes, and the type of what was allocated. The views `tree` (tree.c) and `flame` (flame.c) are made
 * from it. */
#ifndef MALLOSCOPE_VIEW_STACK_TREE_H
#define MALLOSCOPE_VIEW_STACK_TREE_H

#include "view/call_tree.h"
#include "view/frame_list.h"
#include "view/view.h"

#define STACK_TREE_SIDES 2 /* at most; those of a comparison */

/* A recording whose stacks are in the tree. */
struct stack_tree_side {
    const struct model *model;
    struct resolver *resolver;
};

struct stack_tree {
    struct frame_list frames; /* what `frame` of a call means */
    struct call_tree tree;
    /* By side and stack of its model. A stack that the filter dropped has CALL_NONE and FRAME_NONE. */
    uint32_t *stack_call[STACK_TREE_SIDES]; /* the call at which the stack ends */
    uint32_t *stack_site[STACK_TREE_SIDES]; /* the frame that is its site */
};

/* Of the query, `filter` and `raw_sites` are used. Where frames of both sides are equal, the frame of side 0 is
 * listed. Fails if the filter is no regular expression. */
int stack_tree_make(const struct stack_tree_side *sides, size_t side_count, enum frame_match match,
    const struct view_query *query, struct stack_tree *ret_tree, struct problem *problem);
void stack_tree_free(struct stack_tree *tree);

#endif
