/* A recording of a program that names its heaps, types, scopes and threads. Its code is that of the test. */
#ifndef MALLOSCOPE_TESTS_LABELLED_RECORDING_H
#define MALLOSCOPE_TESTS_LABELLED_RECORDING_H

#include "load_model.h"
#include "model/model.h"
#include "symbol/symbol.h"
#include "test_model_recording.h"

#include <elfutils/libdwelf.h>
#include <inttypes.h>

/* Never called: the recording says that they allocated. */
__attribute__((noinline)) static int load_level(void) {
    return printf("level\n");
}
__attribute__((noinline)) static int read_config(void) {
    return printf("config\n");
}

struct labelled {
    struct made made;
    const char *folder;
    struct model *model;
    struct resolver *resolver;
    uint32_t textures, pixel, level, load, start, request, worker;
};

static inline void note_build_id(struct module_record *module, const char *path) {
    elf_version(EV_CURRENT);
    int file = open(path, O_RDONLY);
    Elf *elf = elf_begin(file, ELF_C_READ, NULL);
    const void *build_id;
    ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);
    if (size > 0) memcpy(module->build_id, build_id, module->build_id_size = (uint8_t)size);
    elf_end(elf);
    close(file);
}

/* The file of the test, where the kernel has put it. */
static inline void map_code(struct made *made) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4352], path[4096];
    uint64_t start, end, offset, inode;
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64 " %*s %" SCNu64 " %4095s", &start, &end,
                &offset, &inode, path) == 5 &&
            start <= (uintptr_t)load_level && (uintptr_t)load_level < end) {
            struct module_record *module = made_module(made, path, start, end, 0);
            module->file_offset = offset;
            module->inode = inode;
            note_build_id(module, path);
        }
    fclose(maps);
}

static inline uint64_t call_in(int (*function)(void)) {
    return (uintptr_t)function + 2;
}
static inline uint64_t scope(uint32_t name) {
    return (uint64_t)FRAME_SCOPE << FRAME_KIND_SHIFT | name;
}
static inline uint64_t thread(uint32_t name) {
    return (uint64_t)FRAME_THREAD << FRAME_KIND_SHIFT | name;
}

#define ALLOCATED(labelled, heap, type, bytes, ...)                                                          \
    allocated(&(labelled)->made, heap, type, bytes, (const uint64_t[]){__VA_ARGS__},                         \
        sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* One block, still live, from these frames. */
static inline void allocated(
    struct made *made, uint32_t heap, uint32_t type, uint64_t bytes, const uint64_t *frames, uint32_t count) {
    struct stack_record *record = made_stack(made, frames, count, STACK_COMPLETE, NULL);
    record->heap = heap;
    record->type = type;
    record->alloc_objects = record->peak_objects = OBJECT_ONE;
    record->alloc_bytes = record->peak_bytes = bytes * BYTE_ONE;
}

/* 1920 bytes: 1000 in a heap of textures; 840 in malloc's from the same place, of which 340 are of a type and
 * came there in two ways; 50 of which only a scope is known; 20 and 10 without any scope, the latter of a
 * stack that is not known. load_level entered the scope "load; level", and read_config "start". */
static inline struct labelled labelled_new(void) {
    struct labelled l = {.made = made_new(1, 0), .folder = make_folder()};
    struct made *made = &l.made;
    map_code(made);
    uint32_t name = made_name(made, "textures");
    l.textures = made_heap(made, name, 1);
    l.pixel = made_name(made, "struct pixel");
    l.level = made_name(made, "struct level");
    l.load = made_name(made, "load; level");
    l.start = made_name(made, "start");
    l.request = made_name(made, "request");
    l.worker = made_name(made, "worker");
    uint64_t load = call_in(load_level), config = call_in(read_config),
             cut = (uint64_t)FRAME_CUT << FRAME_KIND_SHIFT;
    ALLOCATED(&l, l.textures, l.pixel, 1000, scope(l.load), load, scope(l.start), config, thread(l.worker));
    ALLOCATED(&l, 0, 0, 500, scope(l.load), load, scope(l.start), config, thread(l.worker));
    ALLOCATED(&l, 0, l.level, 300, scope(l.load), load, scope(l.start), config, thread(l.worker));
    ALLOCATED(&l, 0, l.level, 40, scope(l.load), load, thread(l.worker));
    ALLOCATED(&l, 0, 0, 50, scope(l.request), thread(l.worker));
    ALLOCATED(&l, 0, 0, 20, config);
    ALLOCATED(&l, 0, 0, 10, cut);
    return l;
}

static inline void labelled_load(struct labelled *l) {
    struct problem problem = {0};
    const char *path = in_folder(l->folder, "labelled.mscope");
    made_write(&l->made, path);
    if (load_model(path, &l->model, &problem) < 0) {
        fprintf(stderr, "%s\n", problem.what);
        abort();
    }
    l->resolver = resolver_new(l->model);
}

static inline void labelled_free(struct labelled *l) {
    resolver_free(l->resolver);
    model_free(l->model);
    made_free(&l->made);
    remove_folder(l->folder);
}

#endif
