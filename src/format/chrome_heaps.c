#include "format/chrome_heaps.h"

#include <inttypes.h>

/* Adds a node and all nodes above it but the root. */
static void add_path(struct number_set *nodes, const struct frame_tree *tree, uint32_t node) {
    for (; node != FRAME_TREE_ROOT && !number_set_has(nodes, node); node = frame_tree_node(tree, node).parent)
        number_set_add(nodes, node);
}

/* Ids begin at 1, since the viewer takes 0 for "none". */
static int64_t id_of_name(uint32_t name) {
    return name + INT64_C(1);
}

static void write_named(struct json *json, int64_t id, uint32_t name, uint32_t parent) {
    json_object(json);
    json_key_integer(json, "id", id);
    json_key_integer(json, "name_sid", id_of_name(name));
    if (parent != FRAME_TREE_ROOT) json_key_integer(json, "parent", parent);
    json_object_end(json);
}

/* Each event defines everything that it names, even if another event has defined it before: the viewer keeps paths
 * by process, and reads the events in an order of its own. */
static void write_maps(struct json *json, const struct frame_tree *tree, const struct number_set *nodes,
    const struct number_set *types) {
    struct number_set names = {0};

    json_key(json, "nodes");
    json_array(json);
    for (uint32_t node = 1; node < nodes->size; node++) {
        if (!nodes->has[node]) continue;
        struct frame_node found = frame_tree_node(tree, node);
        write_named(json, node, found.name, found.parent);
        number_set_add(&names, found.name);
    }
    json_array_end(json);

    json_key(json, "types");
    json_array(json);
    for (uint32_t type = 0; type < types->size; type++) {
        if (!types->has[type]) continue;
        write_named(json, id_of_name(type), type, FRAME_TREE_ROOT);
        number_set_add(&names, type);
    }
    json_array_end(json);

    json_key(json, "strings");
    json_array(json);
    for (uint32_t name = 0; name < names.size; name++) {
        if (!names.has[name]) continue;
        json_object(json);
        json_key_integer(json, "id", id_of_name(name));
        json_key_string(json, "string", frame_tree_text(tree, name));
        json_object_end(json);
    }
    json_array_end(json);
    number_set_free(&names);
}

static void write_columns(struct json *json, const struct heap_dump *dump) {
#define COLUMN(name, value)                                                                                  \
    json_key(json, name);                                                                                    \
    json_array(json);                                                                                        \
    for (size_t i = 0; i < dump->count; i++) json_integer(json, (int64_t)(value));                           \
    json_array_end(json);

    COLUMN("counts", dump->cells[i].self.objects)
    COLUMN("sizes", dump->cells[i].self.bytes)
    COLUMN("types", id_of_name(dump->cells[i].type))
    COLUMN("nodes", dump->cells[i].node)
#undef COLUMN
}

void chrome_heaps_write_v2(
    struct json *json, struct chrome_heap *heaps, size_t count, struct frame_tree *tree, uint64_t threshold) {
    struct number_set nodes = {0}, types = {0};

    json_object(json);
    json_key_integer(json, "version", 1);
    json_key(json, "allocators");
    json_object(json);
    for (size_t i = 0; i < count; i++) {
        struct heap_dump folded;
        heap_dump_fold(&heaps[i].dump, tree, threshold, &folded);
        for (size_t k = 0; k < folded.count; k++) {
            add_path(&nodes, tree, folded.cells[k].node);
            number_set_add(&types, folded.cells[k].type);
        }
        json_key(json, heaps[i].name);
        json_object(json);
        write_columns(json, &folded);
        json_object_end(json);
        heap_dump_free(&folded);
    }
    json_object_end(json);
    json_key(json, "maps");
    json_object(json);
    write_maps(json, tree, &nodes, &types);
    json_object_end(json);
    json_object_end(json);

    number_set_free(&nodes);
    number_set_free(&types);
}

#define NUMBER_SIZE 24

static const char *number_text(int64_t number, char text[NUMBER_SIZE]) {
    snprintf(text, NUMBER_SIZE, "%" PRId64, number);
    return text;
}

static void write_entry(struct json *json, const struct heap_cell *cell) {
    char text[NUMBER_SIZE];

    json_object(json);
    json_key_string(json, "bt", cell->node == FRAME_TREE_ROOT ? "" : number_text(cell->node, text));
    if (cell->type != FRAME_TREE_ANY_TYPE)
        json_key_string(json, "type", number_text(id_of_name(cell->type), text));
    json_key_hexadecimal(json, "size", cell->total.bytes);
    json_key_hexadecimal(json, "count", cell->total.objects);
    json_object_end(json);
}

void chrome_heaps_write_v1(struct json *json, const struct chrome_heap *heaps, size_t count,
    const struct frame_tree *tree, uint64_t threshold, struct number_set *nodes, struct number_set *types) {
    json_object(json);
    for (size_t i = 0; i < count; i++) {
        const struct heap_dump *dump = &heaps[i].dump;
        json_key(json, heaps[i].name);
        json_object(json);
        json_key(json, "entries");
        json_array(json);
        for (size_t k = 0; k < dump->count; k++) {
            const struct heap_cell *cell = &dump->cells[k];
            if (!heap_dump_keeps(cell, threshold)) continue;
            write_entry(json, cell);
            add_path(nodes, tree, cell->node);
            if (cell->type != FRAME_TREE_ANY_TYPE) number_set_add(types, cell->type);
        }
        json_array_end(json);
        json_object_end(json);
    }
    json_object_end(json);
}

void chrome_heaps_write_stack_frames(
    struct json *json, const struct frame_tree *tree, const struct number_set *nodes) {
    char text[NUMBER_SIZE];

    json_object(json);
    for (uint32_t node = 1; node < nodes->size; node++) {
        if (!nodes->has[node]) continue;
        struct frame_node found = frame_tree_node(tree, node);
        json_key(json, number_text(node, text));
        json_object(json);
        json_key_string(json, "name", frame_tree_text(tree, found.name));
        if (found.parent != FRAME_TREE_ROOT) json_key_string(json, "parent", number_text(found.parent, text));
        json_object_end(json);
    }
    json_object_end(json);
}

void chrome_heaps_write_type_names(
    struct json *json, const struct frame_tree *tree, const struct number_set *types) {
    char text[NUMBER_SIZE];

    json_object(json);
    for (uint32_t type = 0; type < types->size; type++) {
        if (!types->has[type]) continue;
        json_key(json, number_text(id_of_name(type), text));
        json_string(json, frame_tree_text(tree, type));
    }
    json_object_end(json);
}
