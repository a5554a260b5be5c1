#include "record/intercept/real_allocator.h"

#include "platform/maps.h"
#include "platform/system.h"
#include "record/intercept/cxx_operators.h"
#include "record/intercept/libc_names.h"
#include "record/intercept/libc_symbols.h"
#include "record/intercept/nested_calls.h"
#include "record/intercept/search_order.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct real_allocator real_allocator;

enum { UNRESOLVED, RESOLVING, RESOLVED };

static struct {
    _Atomic int stage;
    char module[PATH_MAX]; /* path of the file that serves malloc */
    char own[PATH_MAX];    /* path of this library */
    struct maps_reader maps;
    struct code_range allocator, ours;
    bool is_libc, is_whole, is_shadowed, is_late, bears_marks;
} state;

/* Not through stdio, which may allocate. */
static _Noreturn void die(const char *name) {
    static const char
        before[] = "malloscope: no allocator found: the symbol '",
        after[] =
            "' is defined nowhere behind the recorder. Run the program without malloscope and report this.\n";
    struct iovec parts[] = {
        {(void *)before, sizeof before - 1}, {(void *)name, strlen(name)}, {(void *)after, sizeof after - 1}};
    system_call(SYS_writev, STDERR_FILENO, (uint64_t)parts, 3, 0, 0, 0);
    for (;;) system_call_always(SYS_exit_group, 1, 0, 0, 0, 0, 0);
}

static bool inside(const struct maps_line *line, const void *function) {
    return (uintptr_t)function - line->start < line->end - line->start;
}

/* Whether all functions of the family lie in this mapping. */
static bool family_is_whole(const struct maps_line *line) {
    bool whole = true;
#define REAL_COMPARE(type, name, parameters) whole &= inside(line, (void *)real_allocator.name);
    REAL_FUNCTIONS(REAL_COMPARE)
#undef REAL_COMPARE
    return whole;
}

static bool is_cpp_library(const char *path) {
    return strstr(path, "/libstdc++.") || strstr(path, "/libc++.");
}

/* Finds the mapped file that serves malloc. It is the C library if a function lies in it that no other library has.
 * dladdr would find it as well, but searches symbol tables, which takes a hundred thousand instructions each time.
 *
 * Returns how many of `next_new` and `next_delete`, the plain operators behind ours, lie in a C++ library or in
 * the allocator. Blocks of such operators may be given to free. */
static int find_module(const void *next_new, const void *next_delete) {
    struct maps_line line;
    void *libc_here = search_order_next(SEARCH_ORDER_LIBC);
    int by_library = 0, by_allocator = 0;
    if (!maps_open(&state.maps)) return 0;
    while (maps_next(&state.maps, &line)) {
        if (!line.executable) continue;
        int operators = inside(&line, next_new) + inside(&line, next_delete);
        if (is_cpp_library(line.path)) by_library += operators;
        if (inside(&line, (void *)find_module)) {
            state.ours = (struct code_range){line.start, line.end};
            strncpy(state.own, line.path, sizeof state.own - 1);
        }
        if (!inside(&line, (void *)real_allocator.malloc)) continue;
        strncpy(state.module, line.path, sizeof state.module - 1);
        state.is_whole = family_is_whole(&line);
        state.is_libc = state.is_whole && inside(&line, libc_here);
        state.allocator = (struct code_range){line.start, line.end};
        by_allocator = operators;
    }
    maps_close(&state.maps);
    return by_library + by_allocator;
}

/* Whether a malloc is defined before us. The program uses that one, and not what is behind us. */
static bool is_shadowed(void) {
    return search_order_is_before("malloc") || search_order_is_before("free") ||
           search_order_is_before("calloc") || search_order_is_before("realloc");
}

static void resolve(void) {
    state.is_late = search_order_is_late();
    struct real_allocator found = {0};
#define REAL_RESOLVE(type, name, parameters) *(void **)&found.name = search_order_next(#name);
    REAL_FUNCTIONS(REAL_RESOLVE)
#undef REAL_RESOLVE
    const char *missing = !found.malloc    ? "malloc"
                          : !found.free    ? "free"
                          : !found.calloc  ? "calloc"
                          : !found.realloc ? "realloc"
                                           : NULL;
    if (missing) die(missing);

    real_allocator = found;
    void *next_new = state.is_late ? NULL : search_order_behind("_Znwm");
    void *next_delete = next_new ? search_order_behind("_ZdlPv") : NULL;
    int freeable = find_module(next_new, next_delete);
    if (!state.is_libc && !state.is_late) libc_names_set_apart();
    if (!state.is_libc) nested_calls_expect(&state.allocator, &state.ours);
    state.is_shadowed = !state.is_late && is_shadowed();
    state.bears_marks = state.is_libc && !state.is_late && !state.is_shadowed && libc_symbols_take();
    cxx_operators_set(!next_new || !next_delete                                           ? WITHDRAWN
                      : state.is_shadowed || freeable < 2 || cxx_operators_are_replaced() ? BY_PROGRAM
                                                                                          : BY_MALLOC);
}

/* Acquire, in all three loads of the stage: they pair with the release below. A thread that sees RESOLVED sees
 * `real_allocator` filled. */
static __attribute__((noinline, cold)) bool make_ready(int stage) {
    if (stage == RESOLVING || !atomic_compare_exchange_strong_explicit(&state.stage, &stage, RESOLVING,
                                  memory_order_acquire, memory_order_acquire))
        return stage == RESOLVED;
    resolve();
    atomic_store_explicit(&state.stage, RESOLVED, memory_order_release);
    return true;
}

bool real_allocator_ready(void) {
    int stage = atomic_load_explicit(&state.stage, memory_order_acquire);
    return __builtin_expect(stage == RESOLVED, 1) || make_ready(stage);
}

const char *real_allocator_module(void) {
    return state.module;
}
const char *real_allocator_own_path(void) {
    return state.own;
}
bool real_allocator_is_late(void) {
    return state.is_late;
}
bool real_allocator_is_shadowed(void) {
    return state.is_shadowed;
}
bool real_allocator_bears_marks(void) {
    return state.bears_marks;
}
