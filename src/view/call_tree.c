#include "view/call_tree.h"

#include "base/memory.h"

#include <stdlib.h>

#define CALLEES_LISTED 8

static uint32_t add_call(struct call_tree *tree, uint32_t parent, uint32_t frame) {
    if (tree->count == tree->capacity) {
        if (tree->capacity > UINT32_MAX / 4) memory_is_short();
        tree->capacity = tree->capacity ? 2 * tree->capacity : 1024;
        tree->calls = memory_reallocate(tree->calls, tree->capacity * sizeof *tree->calls);
    }
    tree->calls[tree->count] = (struct call){.parent = parent, .frame = frame};
    return tree->count++;
}

struct search {
    const struct call *calls;
    uint32_t parent, frame;
};

static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    const struct call *call = &search->calls[number];
    return call->parent == search->parent && call->frame == search->frame;
}

static uint32_t indexed_callee(struct call_tree *tree, uint32_t parent, uint32_t frame) {
    uint64_t hash = (uint64_t)parent << 32 ^ frame * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t number =
        hash_index_find(&tree->index, hash, is_equal, &(struct search){tree->calls, parent, frame});
    if (number != HASH_INDEX_NONE) return number;
    number = add_call(tree, parent, frame);
    hash_index_add(&tree->index, hash, number);
    return number;
}

void call_tree_begin(struct call_tree *tree) {
    if (!tree->count) add_call(tree, CALL_NONE, CALL_NONE);
}

uint32_t call_tree_callee(struct call_tree *tree, uint32_t parent, uint32_t frame) {
    uint32_t last = 0, listed = 0;
    for (uint32_t i = tree->calls[parent].first_callee; i; i = tree->calls[i].next_sibling, listed++) {
        if (tree->calls[i].frame == frame) return i;
        last = i;
    }
    if (listed == CALLEES_LISTED) return indexed_callee(tree, parent, frame);
    uint32_t number = add_call(tree, parent, frame);
    *(last ? &tree->calls[last].next_sibling : &tree->calls[parent].first_callee) = number;
    return number;
}

void call_tree_free(struct call_tree *tree) {
    free(tree->calls);
    hash_index_free(&tree->index);
    *tree = (struct call_tree){0};
}
