/* The call tree of a flame graph, small enough for a page.
 *
 * A recording may have millions of calls, and a page cannot show them. If there are more calls than asked for,
 * those that hold least of every figure are left out. Each call that loses callees gets one `merged` node, which
 * stands for all of them, so that the figures of the tree still add up to the total.
 *
 *     main ── parse ── allocate                main ── parse ── allocate
 *          ├─ tiny ─── malloc_wrapper    ──►        └─ [merged: 3]
 *          └─ minute
 */
#ifndef MALLOSCOPE_VIEW_FLAME_H
#define MALLOSCOPE_VIEW_FLAME_H

#include "view/stack_tree.h"

#define FLAME_NONE UINT32_MAX

struct flame_node {
    uint32_t parent; /* FLAME_NONE for the root, which is node 0 */
    uint32_t frame;  /* FLAME_NONE for the root and for merged nodes */
    uint32_t merged; /* how many calls a merged node stands for; else 0 */
    uint32_t
        row; /* index into `rows` of what stacks that end here allocated; FLAME_NONE: no stack ends here */
};

/* What one recording has in the tree. */
struct flame_part {
    struct figures *rows; /* in the order of their nodes; all parts have row_count of them */
    struct figures sum;   /* of all stacks that the filter keeps */
    /* By stack of the model; FLAME_NONE if the filter dropped the stack. */
    uint32_t *stack_row;
    uint32_t *stack_site; /* the frame that is the site */
};

struct flame {
    struct listed_frame *frames;
    uint32_t frame_count;
    struct flame_node *nodes; /* every node before its callees, and all its callees before its next sibling */
    uint32_t node_count;
    uint32_t row_count;
    uint32_t merged_count; /* calls that merged nodes stand for */
    double least; /* calls were merged that hold less than this share of every figure; 0: none were */
    struct flame_part parts[STACK_TREE_SIDES]; /* by side */
};

/* Of the query, `filter` and `raw_sites` are used. At most `nodes_max` calls are kept besides the root and merged
 * nodes; 0: all of them. */
int flame_make(const struct model *model, struct resolver *resolver, const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem);

/* One tree of two recordings, with a part for each. Calls of both are matched as the lines of a diff are (diff.h):
 * if `query->by` is BY_SITE or BY_LINE, with the numbers of lines, else without. */
int flame_compare(const struct stack_tree_side sides[STACK_TREE_SIDES], const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem);
void flame_free(struct flame *flame);

#endif
