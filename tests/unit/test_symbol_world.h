/* For the tests of src/symbol: files compiled on the spot, and models made by hand that have them mapped. */
#ifndef MALLOSCOPE_TESTS_TEST_SYMBOL_WORLD_H
#define MALLOSCOPE_TESTS_TEST_SYMBOL_WORLD_H

#include "model/module_map.h"
#include "symbol/symbol.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs a shell command and says whether it succeeded. */
__attribute__((format(printf, 1, 2))) static inline bool shell(const char *format, ...) {
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    return system(command) == 0;
}

/* Makes a folder for this test and goes there; leave_folder takes it away again. */
static inline void enter_folder(char folder[64]) {
    snprintf(folder, 64, "/tmp/test_symbol.XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0) abort();
}

static inline void leave_folder(const char *folder) {
    if (chdir("/") != 0 || !shell("rm -rf '%s'", folder)) abort();
}

static inline void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) abort();
}

/* A model of one process with the code of one file mapped, as the kernel would do it. */
struct world {
    struct model model;
    struct model_process process;
    struct model_module module;
    uint64_t load_bias; /* address in the process minus address in the file's headers */
    char path[4096];
    struct resolver *resolver;
};

static inline void world_map(struct world *world, const char *path) {
    *world = (struct world){0};
    if (!realpath(path, world->path)) abort();
    elf_version(EV_CURRENT);
    int fd = open(path, O_RDONLY);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    GElf_Ehdr header;
    size_t count;
    if (!gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &count) != 0) abort();
    world->load_bias = header.e_type == ET_DYN ? 0x7f1234560000 : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        gelf_getphdr(elf, (int)i, &segment);
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
        world->module.start = world->load_bias + (segment.p_vaddr & ~0xfffull);
        world->module.end = world->load_bias + ((segment.p_vaddr + segment.p_memsz + 0xfff) & ~0xfffull);
        world->module.file_offset = segment.p_offset & ~0xfffull;
    }
    const void *build_id;
    ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);
    if (size > 0) memcpy(world->module.build_id, build_id, world->module.build_id_size = (uint8_t)size);
    elf_end(elf);
    close(fd);
    world->process.state = PROCESS_FINISHED;
    world->process.executable = world->path;
    world->module.path = world->path;
    world->model.processes = &world->process;
    world->model.modules = &world->module;
    world->model.process_count = world->model.module_count = 1;
}

/* Starts the resolver. The module may be changed before. */
static inline void world_resolve(struct world *world) {
    module_map_make(&world->model);
    world->resolver = resolver_new(&world->model);
}

static inline void world_end(struct world *world) {
    resolver_free(world->resolver);
    world->resolver = NULL;
    free(world->model.module_ranges);
    world->model.module_ranges = NULL;
}

static inline struct symbol_list look_up_word(struct world *world, uint64_t word) {
    struct model_stack stack = {.frames = &word, .frame_count = 1};
    return resolver_look_up(world->resolver, &stack, 0);
}

/* What the code at an address of the file's headers stands for. */
static inline struct symbol_list look_up(struct world *world, uint64_t link_address) {
    return look_up_word(world, world->load_bias + link_address + 1); /* as a return address */
}

/* The address of a symbol, by nm: 0 if there is none. */
static inline uint64_t address_of(const char *path, const char *symbol) {
    char command[4096], line[4096] = "";
    snprintf(command, sizeof command, "nm '%s' | grep -E ' [TtWw] %s$' | head -1", path, symbol);
    FILE *pipe = popen(command, "r");
    if (!pipe || !fgets(line, sizeof line, pipe)) line[0] = 0;
    pclose(pipe);
    return strtoull(line, NULL, 16);
}

#endif
