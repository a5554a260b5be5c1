#include "view/name_key.h"
#include "view/source_frames.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

/* While it is built the tree is a flat array; node 0 is the root and every other one names its parent. An
 * index by parent and frame finds the child to go down to. */
struct flat_node {
    struct view_node node;
    uint32_t parent;
};

struct growing_tree {
    struct flat_node *nodes;
    size_t count, capacity;
    uint32_t *index; /* node number + 1, open addressing */
    size_t index_size;
};

static uint64_t hash_node(uint32_t parent, const struct view_node *node) {
    uint64_t hash = name_key_hash(NAME_KEY_START + parent, node->function);
    hash = name_key_hash(hash, node->file) + (uint64_t)node->line * 31 + parent;
    return hash ^ hash >> 29;
}

static bool grow(struct growing_tree *tree) {
    size_t capacity = tree->capacity ? 2 * tree->capacity : 256;
    void *nodes = realloc(tree->nodes, capacity * sizeof *tree->nodes);
    if (nodes) tree->nodes = nodes;
    uint32_t *index = calloc(2 * capacity, sizeof *index);
    if (!nodes || !index) {
        free(index);
        return false;
    }
    free(tree->index);
    tree->index = index;
    tree->index_size = 2 * capacity;
    tree->capacity = capacity;
    for (size_t i = 1; i < tree->count; i++) {
        size_t slot = hash_node(tree->nodes[i].parent, &tree->nodes[i].node) & (tree->index_size - 1);
        while (index[slot]) slot = (slot + 1) & (tree->index_size - 1);
        index[slot] = (uint32_t)i + 1;
    }
    return true;
}

/* Number of the child of `parent` for `frame`, made if need be; 0 = out of memory. */
static uint32_t find_child(struct growing_tree *tree, uint32_t parent, const struct source_frame *frame) {
    if (tree->count == tree->capacity && !grow(tree)) return 0;
    struct view_node key = {.function = frame->symbol->function,
        .file = frame->symbol->file,
        .line = frame->symbol->line,
        .module = frame->module ? frame->module->path : NULL};
    size_t slot = hash_node(parent, &key) & (tree->index_size - 1);
    for (; tree->index[slot]; slot = (slot + 1) & (tree->index_size - 1)) {
        const struct flat_node *other = &tree->nodes[tree->index[slot] - 1];
        if (other->parent == parent && other->node.line == key.line &&
            name_key_equal(other->node.function, key.function) &&
            name_key_equal(other->node.file, key.file) && name_key_equal(other->node.module, key.module))
            return tree->index[slot] - 1;
    }
    figures_clear(&key.figures);
    tree->nodes[tree->count] = (struct flat_node){key, parent};
    tree->index[slot] = (uint32_t)++tree->count;
    tree->nodes[parent].node.child_count++;
    return (uint32_t)tree->count - 1;
}

static bool add_stack(struct growing_tree *tree, const struct source_frames *frames, size_t site,
    const struct figures *figures) {
    uint32_t node = 0;
    figures_add(&tree->nodes[0].node.figures, figures);
    for (size_t i = frames->count; i-- > 0;) {
        if (!source_frames_shows(frames, site, i)) continue;
        node = find_child(tree, node, &frames->frames[i]);
        if (!node) return false;
        figures_add(&tree->nodes[node].node.figures, figures);
    }
    return true;
}

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

/* All nodes of the finished tree lie in one array, the children of each side by side, the root first: a
 * parent's number is always smaller than its children's, so one pass places all. */
static struct view_node *arrange(const struct growing_tree *tree, enum view_sort sort) {
    struct view_node *placed = calloc(tree->count, sizeof *placed);
    struct view_node **place = calloc(tree->count, sizeof *place);
    size_t *filled = calloc(tree->count, sizeof *filled);
    if (!placed || !place || !filled) {
        free(placed);
        placed = NULL;
    } else {
        size_t used = 1;
        for (size_t i = 0; i < tree->count; i++) {
            const struct flat_node *flat = &tree->nodes[i];
            place[i] = i ? &place[flat->parent]->children[filled[flat->parent]++] : &placed[0];
            *place[i] = flat->node;
            place[i]->children = flat->node.child_count ? &placed[used] : NULL;
            used += flat->node.child_count;
        }
        sort_children(placed, sort);
    }
    free(place);
    free(filled);
    return placed;
}

struct view_node *view_tree_query(const struct model *model, struct resolver *resolver,
    const struct view_query *query, struct problem *problem) {
    struct frame_filter filter;
    if (frame_filter_make(query->filter, &filter, problem) < 0) return NULL;
    struct growing_tree tree = {0};
    struct source_frames frames = {0};
    struct view_node *root = NULL;
    bool fine = grow(&tree);
    if (fine) {
        tree.nodes[tree.count++] = (struct flat_node){0};
        figures_clear(&tree.nodes[0].node.figures);
    }
    for (size_t i = 0; i < model->stack_count && fine; i++) {
        fine = source_frames_expand_labelled(&frames, model, resolver, &model->stacks[i]);
        if (fine && frame_filter_keeps(&filter, &frames))
            fine = add_stack(
                &tree, &frames, source_frames_site(&frames, query->raw_sites), &model->stacks[i].figures);
    }
    if (fine) root = arrange(&tree, query->sort);
    if (!root)
        problem_set(problem, PROBLEM_FAILURE, "narrow the view with --filter",
            "out of memory while building the call tree");
    frame_filter_free(&filter);
    source_frames_free(&frames);
    free(tree.nodes);
    free(tree.index);
    return root;
}

struct view_node *view_tree_make(const struct model *model, struct resolver *resolver, enum view_sort sort) {
    struct view_query query = {.sort = sort, .raw_sites = true};
    return view_tree_query(model, resolver, &query, NULL);
}

void view_tree_free(struct view_node *root) {
    free(root);
}
