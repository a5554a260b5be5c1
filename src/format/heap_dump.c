#include "format/heap_dump.h"

#include "base/memory.h"

#include <stdlib.h>

static const char long_tail[] = "[long tail]";

/* The cell of a path and a type. It is added if this is the first use. */
static struct heap_cell *cell_of(struct heap_dump *dump, uint32_t node, uint32_t type) {
    const uint32_t key[] = {node, type};
    uint32_t number = intern_table_add(&dump->keys, key, sizeof key);
    if (number < dump->count) return &dump->cells[number];

    if (dump->count == dump->capacity) {
        dump->capacity = dump->capacity ? 2 * dump->capacity : 256;
        dump->cells = memory_reallocate(dump->cells, dump->capacity * sizeof *dump->cells);
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
    cell_of(dump, FRAME_TREE_ROOT, FRAME_TREE_ANY_TYPE);
    if (amount.bytes == 0 && amount.objects == 0) return;
    const uint32_t types[] = {type, FRAME_TREE_ANY_TYPE};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        add_amount(&cell_of(dump, node, types[i])->self, amount);
        for (uint32_t above = node;; above = frame_tree_node(tree, above).parent) {
            add_amount(&cell_of(dump, above, types[i])->total, amount);
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
    struct heap_dump folded = {0};
    for (size_t i = 0; i < dump->count; i++) {
        const struct heap_cell cell = dump->cells[i];
        bool empty = cell.self.bytes == 0 && cell.self.objects == 0;
        if (cell.type == FRAME_TREE_ANY_TYPE || empty) continue;

        uint32_t node = cell.node;
        while (!heap_dump_keeps(cell_of(dump, node, FRAME_TREE_ANY_TYPE), threshold))
            node = frame_tree_node(tree, node).parent;
        if (node != cell.node) node = frame_tree_add(tree, node, long_tail);
        add_amount(&cell_of(&folded, node, cell.type)->self, cell.self);
    }
    *ret_folded = folded;
}

void heap_dump_free(struct heap_dump *dump) {
    intern_table_free(&dump->keys);
    free(dump->cells);
    *dump = (struct heap_dump){0};
}
