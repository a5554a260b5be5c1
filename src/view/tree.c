#include "base/memory.h"
#include "view/name_key.h"
#include "view/stack_tree.h"
#include "view/view.h"

#include <stdlib.h>

static int compare_nodes(const void *left, const void *right, void *context) {
    const struct view_node *a = left, *b = right;
    enum view_sort sort = *(enum view_sort *)context;
    double value_a = view_sort_value(&a->figures, sort), value_b = view_sort_value(&b->figures, sort);
    if (value_a != value_b) return value_a < value_b ? 1 : -1;
    int order = name_key_compare(a->function, b->function);
    if (!order) order = name_key_compare(a->file, b->file);
    return order ? order : a->line - b->line;
}

static void sort_children(struct view_node *node, enum view_sort sort) {
    if (!node->child_count) return;
    qsort_r(node->children, node->child_count, sizeof *node->children, compare_nodes, &sort);
    for (size_t i = 0; i < node->child_count; i++) sort_children(&node->children[i], sort);
}

/* The nodes by the number of their call, with their names, and how many children they have. */
static struct view_node *make_nodes(const struct stack_tree *stacks) {
    const struct call_tree *tree = &stacks->tree;
    struct view_node *nodes = memory_allocate(tree->count * sizeof *nodes);
    for (uint32_t i = 0; i < tree->count; i++) {
        figures_clear(&nodes[i].figures);
        if (i == CALL_ROOT) continue;
        const struct listed_frame *frame = &stacks->frames.frames[tree->calls[i].frame];
        nodes[i].function = frame->function;
        nodes[i].file = frame->file;
        nodes[i].module = frame->module;
        nodes[i].line = frame->line;
        nodes[tree->calls[i].parent].child_count++;
    }
    return nodes;
}

/* Adds the figures of each stack to all nodes on its path. */
static void add_figures(const struct stack_tree *stacks, const struct model *model, struct view_node *nodes) {
    for (size_t i = 0; i < model->stack_count; i++)
        for (uint32_t call = stacks->stack_call[0][i]; call != CALL_NONE;
             call = stacks->tree.calls[call].parent)
            figures_add(&nodes[call].figures, &model->stacks[i].figures);
}

/* All nodes of the finished tree lie in one array: the root first, and the children of each node side by side. A
 * parent's number is smaller than its children's, so that one pass over the calls places all nodes. */
static struct view_node *arrange(const struct call_tree *tree, const struct view_node *nodes) {
    struct view_node *placed = memory_allocate(tree->count * sizeof *placed);
    struct view_node **place = memory_allocate(tree->count * sizeof *place);
    size_t *filled = memory_allocate(tree->count * sizeof *filled), used = 1;
    for (uint32_t i = 0; i < tree->count; i++) {
        uint32_t parent = tree->calls[i].parent;
        place[i] = i == CALL_ROOT ? &placed[0] : &place[parent]->children[filled[parent]++];
        *place[i] = nodes[i];
        place[i]->children = nodes[i].child_count ? &placed[used] : NULL;
        used += nodes[i].child_count;
    }
    free(place);
    free(filled);
    return placed;
}

struct view_node *view_tree_query(const struct model *model, struct resolver *resolver,
    const struct view_query *query, struct problem *problem) {
    struct stack_tree_side side = {model, resolver};
    struct stack_tree stacks;
    if (stack_tree_make(&side, 1, MATCH_PLACES, query, &stacks, problem) < 0) return NULL;
    struct view_node *nodes = make_nodes(&stacks);
    add_figures(&stacks, model, nodes);
    struct view_node *root = arrange(&stacks.tree, nodes);
    sort_children(root, query->sort);
    free(nodes);
    stack_tree_free(&stacks);
    return root;
}

void view_tree_free(struct view_node *root) {
    free(root);
}
