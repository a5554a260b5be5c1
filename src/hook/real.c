#include "hook/real.h"

#include "core/maps.h"
#include "hook/mark.h"
#include "hook/operators.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct real real;

enum { UNRESOLVED, RESOLVING, RESOLVED };

static struct {
    _Atomic int stage;
    char module[4096];
    struct maps_reader maps;
    bool is_libc, is_shadowed;
    _Atomic size_t early_used;
    char early[16384] __attribute__((aligned(16))); /* the look-up takes a few hundred bytes, if any */
} state;

/* Not through stdio, which may allocate. */
static void die(const char *name) {
    static const char
        before[] = "malloscope: no allocator found: the symbol '",
        after[] =
            "' is defined nowhere behind the recorder. Run the program without malloscope and report this.\n";
    if (write(STDERR_FILENO, before, sizeof before - 1) < 0 || write(STDERR_FILENO, name, strlen(name)) < 0 ||
        write(STDERR_FILENO, after, sizeof after - 1) < 0)
        _exit(1);
    _exit(1);
}

static bool inside(const struct maps_line *line, const void *function) {
    return (uintptr_t)function - line->start < line->end - line->start;
}

/* The family is whole if all of it lies in the C library's code, beside getpid. dladdr would tell too, but it
 * searches symbol tables: a hundred thousand instructions for each question. */
static bool family_is_libc(const struct maps_line *line) {
    bool whole = inside(line, dlsym(RTLD_NEXT, "getpid"));
#define REAL_COMPARE(type, name, parameters) whole &= inside(line, (void *)real.name);
    REAL_FUNCTIONS(REAL_COMPARE)
#undef REAL_COMPARE
    return whole;
}

static bool is_cpp_library(const char *path) {
    return strstr(path, "/libstdc++.") || strstr(path, "/libc++.");
}

/* Looks through the mapped files for the one that serves malloc. */
static void find_module(void) {
    struct maps_line line;
    if (!maps_open(&state.maps)) return;
    while (maps_next(&state.maps, &line)) {
        if (!inside(&line, (void *)real.malloc)) continue;
        strncpy(state.module, line.path, sizeof state.module - 1);
        state.is_libc = family_is_libc(&line);
    }
    maps_close(&state.maps);
}

/* The program has a malloc of its own that comes before ours: what is behind us is not what it uses. */
static bool is_shadowed(void) {
    extern char ours_malloc[], ours_free[], ours_calloc[], ours_realloc[]; /* entry.S */
    return is_defined_before("malloc", ours_malloc) || is_defined_before("free", ours_free) ||
           is_defined_before("calloc", ours_calloc) || is_defined_before("realloc", ours_realloc);
}

static enum operators whose_operators(void) {
    void *next_new = dlsym(RTLD_NEXT, "_Znwm"), *next_delete = next_new ? dlsym(RTLD_NEXT, "_ZdlPv") : NULL;
    if (!next_new || !next_delete) {
        dlerror(); /* the program must not find ours */
        return WITHDRAWN;
    }
    if (state.is_shadowed || operators_are_replaced() || !maps_open(&state.maps)) return BY_PROGRAM;
    struct maps_line line;
    int known = 0;
    while (maps_next(&state.maps, &line)) {
        /* The allocator's free takes what its operator new gives. */
        if (!is_cpp_library(line.path) && strcmp(line.path, state.module) != 0) continue;
        known += inside(&line, next_new) + inside(&line, next_delete);
    }
    maps_close(&state.maps);
    return known == 2 ? BY_MALLOC : BY_PROGRAM;
}

static void resolve(void) {
    const char *missing = NULL;
    struct real found;
#define REAL_RESOLVE(type, name, parameters)                                                                 \
    *(void **)&found.name = dlsym(RTLD_NEXT, #name);                                                         \
    if (!found.name) missing = #name;
    REAL_FUNCTIONS(REAL_RESOLVE)
#undef REAL_RESOLVE
    if (!found.malloc || !found.free || !found.calloc || !found.realloc) die(missing);

    real = found;
    find_module();
    state.is_shadowed = is_shadowed();
    operators_are(whose_operators());
}

bool real_ready(void) {
    int stage = atomic_load_explicit(&state.stage, memory_order_acquire);
    if (stage == RESOLVED) return true;
    if (stage == RESOLVING || !atomic_compare_exchange_strong_explicit(&state.stage, &stage, RESOLVING,
                                  memory_order_acquire, memory_order_acquire))
        return stage == RESOLVED;
    resolve();
    atomic_store_explicit(&state.stage, RESOLVED, memory_order_release);
    return true;
}

const char *real_module(void) {
    return state.module;
}
bool real_is_shadowed(void) {
    return state.is_shadowed;
}
bool real_is_libc(void) {
    return state.is_libc;
}

/* The mark holds the size. A block that begins a page could not be marked, so none is given out. */
void *early_allocate(size_t alignment, size_t size) {
    size_t needed;
    if (alignment < MARK_ROOM) alignment = MARK_ROOM;
    if (alignment > 2048 || __builtin_add_overflow(size, 3 * alignment, &needed)) goto no_memory;
    needed = (needed + 15) & ~(size_t)15;

    char *base = state.early;
    size_t used =
        needed > sizeof state.early ? sizeof state.early : atomic_fetch_add(&state.early_used, needed);
    if (used + needed <= sizeof state.early) {
        base += used;
    } else {
        base = mmap(NULL, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED) goto no_memory;
    }
    char *block =
        mark_place((char *)(((uintptr_t)base + alignment - 1) & ~(uintptr_t)(alignment - 1)), alignment);
    mark_set(block, DISTANCE_EARLY, &(struct sample){.size = size});
    return block;

no_memory:
    errno = ENOMEM;
    return NULL;
}

size_t early_size(const void *block) {
    return mark_sample(block, 0).size;
}
