/* craft_recording KIND FILE: a recording that no recorder would write, made to cost its reader as much as it
 * can. */
#include <stddef.h>
#include <stdint.h>

#define MADE_SIZE (UINT64_C(64) << 20)
#include "../unit/test_model_recording.h"

#define COUNTED 2560 /* bytes in fixed point: ten */

static void count(struct stack_record *stack) {
    stack->samples = stack->alloc_objects = 4096;
    stack->alloc_bytes = COUNTED;
}

/* Every stack belongs to the last of very many heaps. */
static void many_heaps(struct made *made) {
    uint32_t name = made_name(made, "heap"), heap = 0;
    for (int i = 0; i < 300000; i++) heap = made_heap(made, name, 1);
    for (uint64_t i = 0; i < 80000; i++) {
        uint64_t frames[] = {0x1000 + i, 0x2000};
        struct stack_record *stack = made_stack(made, frames, 2, STACK_COMPLETE, NULL);
        stack->heap = heap;
        count(stack);
    }
}

/* Every address lies in very many modules. */
static void many_modules(struct made *made) {
    for (uint64_t i = 0; i < 100000; i++) made_module(made, "/m", 0x1000 + i, UINT64_C(1) << 47, i);
    for (uint64_t i = 0; i < 3000; i++) {
        uint64_t frames[50];
        for (uint64_t k = 0; k < 50; k++) frames[k] = 0x10000000 + i * 50 + k;
        count(made_stack(made, frames, 50, STACK_COMPLETE, NULL));
    }
}

/* A call tree that is as deep as the file is long. */
static void deep_stack(struct made *made) {
    uint32_t depth = 5000000;
    uint64_t *frames = calloc(depth, sizeof *frames);
    for (uint32_t i = 0; i < depth; i++) frames[i] = 0x1000 + i;
    count(made_stack(made, frames, depth, STACK_COMPLETE, NULL));
    free(frames);
}

/* As deep as a stack may be, and none of their calls the same. */
static void deep_tree(struct made *made) {
    uint32_t depth = 16384;
    uint64_t *frames = calloc(depth, sizeof *frames);
    for (uint64_t i = 0; i < 5; i++) {
        for (uint32_t k = 0; k < depth; k++) frames[k] = 0x1000 + i * depth + k;
        count(made_stack(made, frames, depth, STACK_COMPLETE, NULL));
    }
    free(frames);
}

/* Very many names that are one long text. */
static void long_names(struct made *made) {
    size_t length = 20 << 20;
    char *text = malloc(length + 1);
    memset(text, 'n', length);
    text[length] = 0;
    uint64_t shared = made_text(made, text);
    free(text);
    for (int i = 0; i < 60000; i++) {
        uint64_t offset = made_entry(made, &made->header->names, NULL);
        ((struct name_record *)made_at(made, offset))->text = shared + (uint64_t)i % 100;
    }
    for (uint64_t i = 0; i < 1000; i++) {
        struct module_record *module = made_module(made, "", 0x1000 + i * 0x1000, 0x2000 + i * 0x1000, i);
        module->path = shared + i;
        uint64_t frames[] = {0x1800 + i * 0x1000};
        count(made_stack(made, frames, 1, STACK_COMPLETE, NULL));
    }
    made->header->executable = made->header->command_line = shared;
}

/* Tables whose segments all lie at the same place, and counts beyond all measure. */
static void same_place(struct made *made) {
    uint64_t frames[] = {0x1000};
    count(made_stack(made, frames, 1, STACK_COMPLETE, NULL));
    struct table *tables[] = {&made->header->stacks, &made->header->live, &made->header->threads,
        &made->header->modules, &made->header->names, &made->header->heaps};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (int k = 0; k < SEGMENTS_MAX; k++) tables[t]->segment[k] = made->header->stacks.segment[0];
        tables[t]->count = UINT64_MAX / 2;
    }
}

/* A file that is nearly all hole, and said to be used to its end. */
static void sparse(struct made *made, const char *path) {
    uint64_t frames[] = {0x1000}, size = UINT64_C(1) << 40;
    count(made_stack(made, frames, 1, STACK_COMPLETE, NULL));
    made->header->arena_used = made->header->arena_reserved = size;
    made->header->live.first = 1u << 30;
    made->header->live.count = (size >> 8) / made->header->live.entry_size;
    write_file(path, made->header, 1 << 20);
    if (truncate(path, (off_t)size) != 0) abort();
}

static const struct {
    const char *name;
    void (*make)(struct made *made);
} kinds[] = {{"many-heaps", many_heaps}, {"many-modules", many_modules}, {"deep-stack", deep_stack},
    {"deep-tree", deep_tree}, {"long-names", long_names}, {"same-place", same_place}};

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    struct made made = made_new(1, RECORDING_FINISHED);
    if (strcmp(argv[1], "sparse") == 0) {
        sparse(&made, argv[2]);
        return 0;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(argv[1], kinds[i].name) == 0) {
            kinds[i].make(&made);
            write_file(argv[2], made.header, made.header->arena_used);
            return 0;
        }
    return 2;
}
