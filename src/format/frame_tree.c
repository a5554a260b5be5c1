#include "format/frame_tree.h"

uint32_t frame_tree_add(struct frame_tree *tree, uint32_t parent, const char *name) {
    call_tree_begin(&tree->calls);
    return call_tree_callee(&tree->calls, parent, intern_table_add_text(&tree->names, name));
}

uint32_t frame_tree_add_stack(struct frame_tree *tree, const struct source_frames *frames) {
    uint32_t node = FRAME_TREE_ROOT;
    for (size_t i = frames->count; i > 0; i--)
        node = frame_tree_add(tree, node, frames->frames[i - 1].symbol->function);
    return node;
}

struct frame_node frame_tree_node(const struct frame_tree *tree, uint32_t node) {
    return (struct frame_node){tree->calls.calls[node].parent, tree->calls.calls[node].frame};
}

uint32_t frame_tree_type(struct frame_tree *tree, const char *name) {
    return intern_table_add_text(&tree->names, name);
}

const char *frame_tree_text(const struct frame_tree *tree, uint32_t name) {
    return tree->names.entries[name].key;
}

void frame_tree_free(struct frame_tree *tree) {
    intern_table_free(&tree->names);
    call_tree_free(&tree->calls);
}
