#include "format/heap_dump.h"

#include <stdlib.h>
#include <string.h>

static const char long_tail[] = "[long tail]";

struct cell_key {
    uint32_t node, type;
};

uint32_t frame_tree_add(struct frame_tree *tree, uint32_t parent, const char *name) {
    struct frame_node node = {parent, intern_table_add_text(&tree->names, name)};
    return intern_table_add(&tree->nodes, &node, sizeof node) + 1;
}

uint32_t frame_tree_add_stack(struct frame_tree *tree, const struct source_frames *frames) {
    uint32_t node = FRAME_TREE_ROOT;
    for (size_t i = frames->count; i > 0; i--)
        node = frame_tree_add(tree, node, frames->frames[i - 1].symbol->function);
    return node;
}

struct frame_node frame_tree_node(const struct frame_tree *tree, uint32_t node) {
    struct frame_node found;
    memcpy(&found, tree->nodes.entries[node - 1].key, sizeof found);
    return found;
}

uint32_t frame_tree_type(struct frame_tree *tree, const char *name) {
    return intern_table_add_text(&tree->names, name);
}

const char *frame_tree_text(const struct frame_tree *tree, uint32_t name) {
    return tree->names.entries[name].key;
}

bool frame_tree_failed(const struct frame_tree *tree) {
    return tree->names.failed || tree->nodes.failed;
}

void frame_tree_free(struct frame_tree *tree) {
    intern_table_free(&tree->names);
    intern_table_free(&tree->nodes);
}

static struct heap_cell *cell_of(struct heap_dump *dump, uint32_t node, uint32_t type) {
    const struct cell_key key = {node, type};
    uint32_t number = intern_table_add(&dump->keys, &key, sizeof key);
    if (dump->keys.failed) {
        dump->failed = true;
        return NULL;
    }
    if (number < dump->count) return &dump->cells[number];

    if (dump->count == dump->capacity) {
        size_t capacity = dump->capacity ? dump->capacity * 2 : 256;
        struct heap_cell *cells = reallocarray(dump->cells, capacity, sizeof *cells);
        if (!cells) {
            dump->failed = true;
            return NULL;
        }
        dump->cells = cells;
        dump->capacity = capacity;
    }
    dump->cells[dump->count] = (struct heap_cell){.node = node, .type = type};
    return &dump->cells[dump->count++];
}

static void add_amount(struct heap_amount *sum, struct heap_amount amount) {
    sum->bytes += amount.bytes;
    sum->objects += amount.objects;
}

void heap_dump_add(struct heap_dump *dump, const struct frame_tree *tree, uint32_t node, uint32_t type,
    struct heap_amount amount) {
    if (!cell_of(dump, FRAME_TREE_ROOT, FRAME_TREE_ANY_TYPE) || frame_tree_failed(tree)) return;
    if (amount.bytes == 0 && amount.objects == 0) return;
    const uint32_t types[] = {type, FRAME_TREE_ANY_TYPE};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct heap_cell *cell = cell_of(dump, node, types[i]);
        if (!cell) return;
        add_amount(&cell->self, amount);
        for (uint32_t above = node;; above = frame_tree_node(tree, above).parent) {
            cell = cell_of(dump, above, types[i]);
            if (!cell) return;
            add_amount(&cell->total, amount);
            if (above == FRAME_TREE_ROOT) break;
        }
    }
}

bool heap_dump_keeps(const struct heap_cell *cell, uint64_t threshold) {
    bool whole = cell->node == FRAME_TREE_ROOT && cell->type == FRAME_TREE_ANY_TYPE;
    return whole || cell->total.bytes >= threshold;
}

void heap_dump_fold(
    struct heap_dump *dump, struct frame_tree *tree, uint64_t threshold, struct heap_dump *ret_folded) {
    struct heap_dump folded = {.failed = dump->failed};

    for (size_t i = 0; i < dump->count && !folded.failed; i++) {
        const struct heap_cell *cell = &dump->cells[i];
        bool empty = cell->self.bytes == 0 && cell->self.objects == 0;
        if (cell->type == FRAME_TREE_ANY_TYPE || empty) continue;

        uint32_t node = cell->node;
        for (;;) {
            const struct heap_cell *all = cell_of(dump, node, FRAME_TREE_ANY_TYPE);
            if (heap_dump_keeps(all, threshold)) break;
            node = frame_tree_node(tree, node).parent;
        }
        if (node != cell->node) node = frame_tree_add(tree, node, long_tail);
        struct heap_cell *place = cell_of(&folded, node, cell->type);
        if (place) add_amount(&place->self, cell->self);
    }
    folded.failed |= frame_tree_failed(tree);
    *ret_folded = folded;
}

void heap_dump_free(struct heap_dump *dump) {
    intern_table_free(&dump->keys);
    free(dump->cells);
    *dump = (struct heap_dump){0};
}
