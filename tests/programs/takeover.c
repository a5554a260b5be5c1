/* takeover LIBRARY RECORDING PLUGIN CYCLES OTHER_PLUGIN: opens the recorder late, without a preload, and compares
 * what the slots of all modules' GOTs hold before, meanwhile and afterwards. Prints what it found as JSON. */
#define _GNU_SOURCE
#define MSCOPE_LINKED
#include "malloscope.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#else
#define IS_SLOT(type)                                                                                        \
    ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif
#define SLOTS_MAX 65536

struct seen {
    uintptr_t *slot, value;
};
static struct seen seen[SLOTS_MAX];
static size_t seen_count;

static int note_slots(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    const ElfW(Rela) * tables[2] = {0};
    const ElfW(Sym) *symbols = NULL;
    size_t sizes[2] = {0};
    if (strstr(info->dlpi_name, "vdso") || strstr(info->dlpi_name, "malloscope")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        for (const ElfW(Dyn) *part = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); part->d_tag;
             part++) {
            if (part->d_tag == DT_SYMTAB) symbols = (void *)part->d_un.d_ptr;
            if (part->d_tag == DT_RELA) tables[0] = (void *)part->d_un.d_ptr;
            if (part->d_tag == DT_JMPREL) tables[1] = (void *)part->d_un.d_ptr;
            if (part->d_tag == DT_RELASZ) sizes[0] = part->d_un.d_val / sizeof(ElfW(Rela));
            if (part->d_tag == DT_PLTRELSZ) sizes[1] = part->d_un.d_val / sizeof(ElfW(Rela));
        }
    }
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < sizes[table]; i++) {
            uint64_t kind = tables[table][i].r_info;
            if (!IS_SLOT(ELF64_R_TYPE(kind)) || seen_count == SLOTS_MAX) continue;
            /* The program itself may change pointers to data. */
            if (ELF64_ST_TYPE(symbols[ELF64_R_SYM(kind)].st_info) == STT_OBJECT) continue;
            uintptr_t *slot = (void *)(info->dlpi_addr + tables[table][i].r_offset);
            seen[seen_count++] = (struct seen){slot, *slot};
        }
    return 0;
}

/* Built as a library, these two serve a test in Python. */
size_t slots_note(void);
size_t slots_different(void);

size_t slots_note(void) {
    dl_iterate_phdr(note_slots, NULL);
    return seen_count;
}

size_t slots_different(void) {
    size_t count = 0;
    for (size_t i = 0; i < seen_count; i++) count += *seen[i].slot != seen[i].value;
    return count;
}

static atomic_bool over;
static atomic_ulong rounds;

static void *churn(void *unused) {
    while (!over) {
        char *block = malloc(4000), *copy = strdup("strdup is the C library's own caller of malloc");
        block = realloc(block, 9000);
        free(copy);
        free(block);
        rounds++;
    }
    return unused;
}

/* A thread opens and closes a library all the time. Its RELRO pages are protected late: the library may be seen
 * while the linker is still relocating it. */
static atomic_ulong openings;

static void *open_and_close(void *path) {
    while (!over) {
        void *plugin = dlopen(path, RTLD_NOW);
        if (plugin) openings++;
        void *(*take)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_allocate");
        free(take(3000));
        dlclose(plugin);
    }
    return path;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    if (argc != 6) return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) return 3;
    slots_note();

#define FIND(name) __typeof__(&name) name##_ = (__typeof__(&name))dlsym(library, #name)
    FIND(mscope_init);
    FIND(mscope_start);
    FIND(mscope_stop);
    FIND(mscope_stats);
    FIND(mscope_shutdown);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, NULL);
    pthread_create(&threads[3], NULL, open_and_close, argv[5]);

    struct mscope_options options = {.size = sizeof options, .output = argv[2], .rate = 1};
    int result = mscope_init_(&options);
    size_t by_init = slots_different();
    result |= mscope_start_();
    size_t by_start = slots_different();
    for (int i = 0; i < 50; i++) free(malloc(1000)); /* @site freed */
    static void *kept[50];
    for (int i = 0; i < 50; i++) kept[i] = malloc(1000); /* @site kept */

    for (int i = atoi(argv[4]); i > 0; i--) {
        result |= mscope_stop_();
        result |= mscope_start_();
        void *plugin = dlopen(argv[3], RTLD_NOW);
        void *(*take)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_allocate");
        kept[i % 50] = realloc(kept[i % 50], 1000);
        free(take(2000));
        if (i > 1) dlclose(plugin);
    }
    for (int i = 0; i < 50; i++) free(malloc(1000)); /* free works whether the slots are taken over or not */
    struct mscope_stats stats = {.size = sizeof stats};
    result |= mscope_stats_(&stats);
    result |= mscope_shutdown_();
    size_t by_shutdown = slots_different();
    over = true;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 50; i++) free(kept[i]);
    printf("{\"result\": %d, \"slots\": %zu, \"by_init\": %zu, \"by_start\": %zu, \"by_shutdown\": %zu, "
           "\"drops\": %lu, \"rounds\": %lu, \"openings\": %lu}\n",
        result, seen_count, by_init, by_start, by_shutdown, (unsigned long)stats.drops, rounds, openings);
    return 0;
}
