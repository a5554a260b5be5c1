/* The breakdown of a heap by path and type, and what becomes of its long tail. */
#include "check.h"
#include "format/heap_dump.h"

#include <stdlib.h>

static uint32_t path(struct frame_tree *tree, const char *names) {
    char *copy = strdup(names);
    uint32_t node = FRAME_TREE_ROOT;
    for (char *name = strtok(copy, ";"); name; name = strtok(NULL, ";"))
        node = frame_tree_add(tree, node, name);
    free(copy);
    return node;
}

static const struct heap_cell *find(const struct heap_dump *dump, uint32_t node, uint32_t type) {
    for (size_t i = 0; i < dump->count; i++)
        if (dump->cells[i].node == node && dump->cells[i].type == type) return &dump->cells[i];
    return NULL;
}

#define CHECK_CELL(cell, field, bytes_, objects_)                                                            \
    do {                                                                                                     \
        const struct heap_cell *cell_ = (cell);                                                              \
        if (!CHECK(cell_ != NULL)) break;                                                                    \
        CHECK_EQUAL(cell_->field.bytes, bytes_);                                                             \
        CHECK_EQUAL(cell_->field.objects, objects_);                                                         \
    } while (0)

static void equal_paths_have_one_number(void) {
    struct frame_tree tree = {0};
    uint32_t parse = path(&tree, "main;load;parse"), load = path(&tree, "main;load");
    CHECK_EQUAL(path(&tree, "main;load;parse"), parse);
    CHECK_EQUAL(frame_tree_node(&tree, parse).parent, load);
    CHECK_TEXT(frame_tree_text(&tree, frame_tree_node(&tree, parse).name), "parse");
    CHECK(path(&tree, "load") != load);
    CHECK_EQUAL(frame_tree_node(&tree, path(&tree, "main")).parent, FRAME_TREE_ROOT);
    /* A function that calls itself is on the path twice. */
    CHECK(path(&tree, "main;load;load") != load);
    frame_tree_free(&tree);
}

static void paths_hold_what_is_below_them_by_type(void) {
    struct frame_tree tree = {0};
    struct heap_dump dump = {0};
    uint32_t node = frame_tree_type(&tree, "Node"), text = frame_tree_type(&tree, "Text");
    uint32_t main = path(&tree, "main"), load = path(&tree, "main;load"),
             parse = path(&tree, "main;load;parse");

    heap_dump_add(&dump, &tree, parse, node, (struct heap_amount){1000, 10});
    heap_dump_add(&dump, &tree, parse, text, (struct heap_amount){300, 3});
    heap_dump_add(&dump, &tree, load, node, (struct heap_amount){50, 1});
    heap_dump_add(&dump, &tree, parse, node, (struct heap_amount){1, 1});

    CHECK_CELL(&dump.cells[0], total, 1351, 15);
    CHECK_EQUAL(dump.cells[0].node, FRAME_TREE_ROOT);
    CHECK_CELL(find(&dump, main, node), total, 1051, 12);
    CHECK_CELL(find(&dump, main, node), self, 0, 0);
    CHECK_CELL(find(&dump, main, text), total, 300, 3);
    CHECK_CELL(find(&dump, load, FRAME_TREE_ANY_TYPE), total, 1351, 15);
    CHECK_CELL(find(&dump, load, node), self, 50, 1);
    CHECK_CELL(find(&dump, parse, node), self, 1001, 11);
    CHECK_CELL(find(&dump, FRAME_TREE_ROOT, text), total, 300, 3);
    heap_dump_free(&dump);
    frame_tree_free(&tree);
}

static void an_empty_heap_is_one_line(void) {
    struct frame_tree tree = {0};
    struct heap_dump dump = {0}, folded;
    heap_dump_add(&dump, &tree, FRAME_TREE_ROOT, FRAME_TREE_ANY_TYPE, (struct heap_amount){0, 0});
    CHECK_EQUAL(dump.count, 1);
    CHECK(heap_dump_keeps(&dump.cells[0], 1024));
    heap_dump_fold(&dump, &tree, 1024, &folded);
    CHECK_EQUAL(folded.count, 0);
    heap_dump_free(&folded);
    heap_dump_free(&dump);
    frame_tree_free(&tree);
}

static void the_long_tail_goes_to_the_last_path_that_is_large_enough(void) {
    struct frame_tree tree = {0};
    struct heap_dump dump = {0}, folded;
    uint32_t any = frame_tree_type(&tree, "[unknown]"), text = frame_tree_type(&tree, "Text");
    uint32_t large = path(&tree, "main;load;large");

    heap_dump_add(&dump, &tree, large, any, (struct heap_amount){5000, 5});
    heap_dump_add(&dump, &tree, path(&tree, "main;load;small;deep"), any, (struct heap_amount){60, 6});
    heap_dump_add(&dump, &tree, path(&tree, "main;load;small"), any, (struct heap_amount){30, 3});
    heap_dump_add(&dump, &tree, path(&tree, "main;load;tiny"), text, (struct heap_amount){8, 1});
    heap_dump_add(&dump, &tree, path(&tree, "main;other"), any, (struct heap_amount){99, 1});
    heap_dump_add(&dump, &tree, path(&tree, "main;limit"), any, (struct heap_amount){100, 1});

    heap_dump_fold(&dump, &tree, 100, &folded);
    CHECK_EQUAL(folded.count, 5);
    CHECK_CELL(find(&folded, large, any), self, 5000, 5);
    CHECK_CELL(find(&folded, path(&tree, "main;limit"), any), self, 100, 1);
    CHECK_CELL(find(&folded, path(&tree, "main;load;[long tail]"), any), self, 90, 9);
    CHECK_CELL(find(&folded, path(&tree, "main;load;[long tail]"), text), self, 8, 1);
    CHECK_CELL(find(&folded, path(&tree, "main;[long tail]"), any), self, 99, 1);
    heap_dump_free(&folded);

    heap_dump_fold(&dump, &tree, 0, &folded);
    CHECK_EQUAL(folded.count, 6);
    CHECK_CELL(find(&folded, path(&tree, "main;load;small;deep"), any), self, 60, 6);
    heap_dump_free(&folded);

    heap_dump_fold(&dump, &tree, 1 << 20, &folded);
    CHECK_EQUAL(folded.count, 2);
    CHECK_CELL(find(&folded, path(&tree, "[long tail]"), any), self, 5289, 16);
    heap_dump_free(&folded);
    heap_dump_free(&dump);
    frame_tree_free(&tree);
}

static uint64_t state = 88172645463325252;

static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* Whatever the heap: nothing is lost, no type changes, and what is named is large enough. */
static void folding_keeps_every_sum(void) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (int round = 0; round < 200; round++) {
        struct frame_tree tree = {0};
        struct heap_dump dump = {0}, folded;
        uint64_t threshold = draw(4000), by_type[3] = {0}, folded_by_type[3] = {0}, objects = 0;
        uint32_t types[] = {
            frame_tree_type(&tree, "X"), frame_tree_type(&tree, "Y"), frame_tree_type(&tree, "Z")};
        for (int i = 0; i < 60; i++) {
            uint32_t node = FRAME_TREE_ROOT, depth = 1 + draw(9), type = draw(3);
            while (depth--) node = frame_tree_add(&tree, node, names[draw(5)]);
            struct heap_amount amount = {1 + draw(1000), 1 + draw(4)};
            by_type[type] += amount.bytes;
            heap_dump_add(&dump, &tree, node, types[type], amount);
        }
        heap_dump_fold(&dump, &tree, threshold, &folded);
        uint32_t tail = frame_tree_type(&tree, "[long tail]");
        for (size_t i = 0; i < folded.count; i++) {
            const struct heap_cell *cell = &folded.cells[i];
            for (int k = 0; k < 3; k++)
                if (cell->type == types[k]) folded_by_type[k] += cell->self.bytes;
            objects += cell->self.objects;
            struct frame_node last = frame_tree_node(&tree, cell->node);
            uint32_t named = last.name == tail ? last.parent : cell->node;
            const struct heap_cell *all = find(&dump, named, FRAME_TREE_ANY_TYPE);
            if (CHECK(all != NULL) && named != FRAME_TREE_ROOT) CHECK(all->total.bytes >= threshold);
        }
        for (int k = 0; k < 3; k++) CHECK_EQUAL(folded_by_type[k], by_type[k]);
        CHECK_EQUAL(objects, dump.cells[0].total.objects);
        CHECK_EQUAL(dump.cells[0].total.bytes, by_type[0] + by_type[1] + by_type[2]);
        heap_dump_free(&folded);
        heap_dump_free(&dump);
        frame_tree_free(&tree);
    }
}

int main(void) {
    equal_paths_have_one_number();
    paths_hold_what_is_below_them_by_type();
    an_empty_heap_is_one_line();
    the_long_tail_goes_to_the_last_path_that_is_large_enough();
    folding_keeps_every_sum();
    return check_result();
}
