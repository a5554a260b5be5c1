/* A tree of calls, a few words a node, made for many millions of look-ups.
 *
 * Most calls have few callees, and neighbouring stacks meet the same ones: these are listed, in memory that
 * is at hand. A call that has more than a few of them keeps the others in an index. */
#ifndef MALLOSCOPE_VIEW_CALL_TREE_H
#define MALLOSCOPE_VIEW_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_NONE UINT32_MAX

struct call {
    uint32_t parent, frame;
    uint32_t first, next; /* of its listed callees; the next of its caller's. 0 = none */
};

struct call_slot {
    uint32_t parent, frame;
    uint32_t number; /* 0 = empty */
};

/* Zeroed, and then begun. Callers come before their callees. */
struct call_tree {
    struct call *calls; /* 0 is the root */
    uint32_t count, capacity;
    struct call_slot *index; /* open addressing, at most half full */
    uint32_t indexed;
    size_t index_size;
};

/* Makes the root. False: out of memory. */
bool call_tree_begin(struct call_tree *tree);

/* The callee of `parent` for `frame`, made if need be. CALL_NONE: out of memory. */
uint32_t call_tree_callee(struct call_tree *tree, uint32_t parent, uint32_t frame);

void call_tree_free(struct call_tree *tree);

#endif
