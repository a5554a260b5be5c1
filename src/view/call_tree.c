#include "view/call_tree.h"

#include <stdlib.h>

#define LISTED 8 /* callees of a call */

static uint32_t add_call(struct call_tree *tree, uint32_t parent, uint32_t frame) {
    if (tree->count == tree->capacity) {
        if (tree->capacity > UINT32_MAX / 4) return CALL_NONE;
        uint32_t capacity = tree->capacity ? 2 * tree->capacity : 1024;
        void *calls = reallocarray(tree->calls, capacity, sizeof *tree->calls);
        if (!calls) return CALL_NONE;
        tree->calls = calls;
        tree->capacity = capacity;
    }
    tree->calls[tree->count] = (struct call){.parent = parent, .frame = frame};
    return tree->count++;
}

static struct call_slot *find_slot(const struct call_tree *tree, uint32_t parent, uint32_t frame) {
    uint64_t hash = ((uint64_t)parent << 32 | frame) * UINT64_C(0x9e3779b97f4a7c15);
    size_t mask = tree->index_size - 1, slot = (hash ^ hash >> 32) & mask;
    for (; tree->index[slot].number; slot = (slot + 1) & mask)
        if (tree->index[slot].parent == parent && tree->index[slot].frame == frame) break;
    return &tree->index[slot];
}

static bool grow_index(struct call_tree *tree) {
    if (2 * (size_t)tree->indexed < tree->index_size) return true;
    struct call_tree larger = {.index_size = tree->index_size ? 2 * tree->index_size : 1024};
    larger.index = calloc(larger.index_size, sizeof *larger.index);
    if (!larger.index) return false;
    for (size_t i = 0; i < tree->index_size; i++)
        if (tree->index[i].number)
            *find_slot(&larger, tree->index[i].parent, tree->index[i].frame) = tree->index[i];
    free(tree->index);
    tree->index = larger.index;
    tree->index_size = larger.index_size;
    return true;
}

static uint32_t indexed_callee(struct call_tree *tree, uint32_t parent, uint32_t frame) {
    if (!grow_index(tree)) return CALL_NONE;
    struct call_slot *slot = find_slot(tree, parent, frame);
    if (slot->number) return slot->number;
    uint32_t number = add_call(tree, parent, frame);
    if (number == CALL_NONE) return CALL_NONE;
    *slot = (struct call_slot){parent, frame, number};
    tree->indexed++;
    return number;
}

bool call_tree_begin(struct call_tree *tree) {
    return add_call(tree, CALL_NONE, CALL_NONE) != CALL_NONE;
}

uint32_t call_tree_callee(struct call_tree *tree, uint32_t parent, uint32_t frame) {
    uint32_t last = 0, listed = 0;
    for (uint32_t i = tree->calls[parent].first; i; i = tree->calls[i].next, listed++) {
        if (tree->calls[i].frame == frame) return i;
        last = i;
    }
    if (listed == LISTED) return indexed_callee(tree, parent, frame);
    uint32_t number = add_call(tree, parent, frame);
    if (number == CALL_NONE) return CALL_NONE;
    *(last ? &tree->calls[last].next : &tree->calls[parent].first) = number;
    return number;
}

void call_tree_free(struct call_tree *tree) {
    free(tree->calls);
    free(tree->index);
    *tree = (struct call_tree){0};
}
