/* A call tree for a flame graph: compact while it is built from millions of stacks, and small when it is
 * done.
 *
 * Branches go from the start of the program down to the site (view.h). What a page could not show anyway is
 * merged: if there are too many calls, those that hold least of every figure are left out, and each call
 * whose callees are concerned gets one `merged` node that stands for all of them, so that everything adds up.
 *
 *     main ── parse ── allocate                main ── parse ── allocate
 *          ├─ tiny ─── malloc_wrapper    ──►        └─ [merged: 3]
 *          └─ minute
 */
#ifndef MALLOSCOPE_VIEW_FLAME_H
#define MALLOSCOPE_VIEW_FLAME_H

#include "view/frame_list.h"
#include "view/view.h"

#define FLAME_NONE  UINT32_MAX
#define FLAME_SIDES 2 /* of a comparison */

struct flame_node {
    uint32_t parent; /* FLAME_NONE for the root, which is node 0 */
    uint32_t frame;  /* FLAME_NONE for the root and for merged ones */
    uint32_t merged; /* how many calls a merged node stands for, else 0 */
    uint32_t row;    /* what was allocated by stacks that end here: index into rows, FLAME_NONE = nothing */
};

/* What one recording has in the tree. */
struct flame_part {
    struct figures *rows; /* in the order of their nodes; all parts have as many */
    struct figures sum;   /* of all stacks that the filter keeps */
    /* By stack of the model; FLAME_NONE if the filter dropped it. */
    uint32_t *stack_row;
    uint32_t *stack_site; /* the frame */
};

struct flame {
    struct listed_frame *frames;
    uint32_t frame_count;
    struct flame_node *nodes; /* every node before its callees, and the callees before its next sibling */
    uint32_t node_count;
    uint32_t row_count;
    uint32_t merged_count; /* calls that merged nodes stand for */
    double least;          /* the share of some figure that a call had to hold not to be merged */
    struct flame_part parts[FLAME_SIDES];
};

/* `query->by` and `query->sort` are not used. About `nodes_max` calls are kept, 0 = all. All is in the first
 * part. */
int flame_make(const struct model *model, struct resolver *resolver, const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem);

struct flame_side {
    const struct model *model;
    struct resolver *resolver;
};
/* One tree of two recordings, with a part for each. Calls are matched as lines of a diff are (diff.h);
 * BY_SITE and BY_LINE tell the lines of a function apart. Frames are those of the first side where both have
 * them. */
int flame_compare(const struct flame_side sides[FLAME_SIDES], const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem);
void flame_free(struct flame *flame);

#endif
