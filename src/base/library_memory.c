/* Lack of memory in the libraries that the tool uses (policy: memory.h).
 *
 * The tool's own code allocates with memory.h. Some libraries crash for lack of memory: libdw asserts that its
 * hash tables grow, and uses what malloc returned unchecked. Therefore malloc, calloc and realloc are defined
 * here, in the executable, where the dynamic linker finds them first: a call from a library that fails ends
 * the command with a message. Calls from the executable itself get NULL, as from any malloc: memory.h and
 * the parts of libiberty that are linked in deal with that. */
#include "base/dynamic_section.h"
#include "base/memory.h"
#include "base/own_code.h"

#include <errno.h>
#include <libiberty/libiberty.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* A library that asks for more than this was misled by a damaged file. Its request fails, as it would without
 * this file: libraries check the result of requests whose size comes from a file. */
#define SANE_MOST (UINT64_C(1) << 30)

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
} next;

/* The first definition of `name` in a library. Not by dlsym: a preloaded library may have put its own in place of
 * libc's, which allocates, and so comes back here. The list of libraries is read at the first allocation, when there
 * is one thread. */
static void *find_in_libraries(const char *name) {
    for (const struct link_map *library = _r_debug.r_map->l_next; library; library = library->l_next) {
        const ElfW(Sym) *symbol = dynamic_section_find(library, name);
        if (symbol) return (void *)(library->l_addr + symbol->st_value);
    }
    return NULL;
}

static void find_next(void) {
    *(void **)&next.malloc = find_in_libraries("malloc");
    *(void **)&next.realloc = find_in_libraries("realloc");
    *(void **)&next.calloc = find_in_libraries("calloc");
}

static void *checked(void *memory, size_t size, const void *caller) {
    if (!memory && size && size <= SANE_MOST && !own_code_has(caller)) memory_is_short();
    return memory;
}

void *malloc(size_t size) {
    if (!next.malloc) find_next();
    return checked(next.malloc(size), size, __builtin_return_address(0));
}

void *calloc(size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    if (!next.calloc) find_next();
    return checked(next.calloc(count, size), whole, __builtin_return_address(0));
}

void *realloc(void *block, size_t size) {
    if (!next.realloc) find_next();
    return checked(next.realloc(block, size), size, __builtin_return_address(0));
}

/* libiberty's functions of these names, which its hash tables and its demangler call, end the program with a
 * message and a status of their own. libiberty is linked statically, so that these take their place. The
 * tool's own code does not call them. */

void *xmalloc(size_t size) {
    return memory_allocate(size);
}

void *xcalloc(size_t count, size_t size) {
    return memory_allocate_array(count, size);
}

void *xrealloc(void *block, size_t size) {
    return memory_reallocate(block, size);
}

void xmalloc_failed(size_t size) {
    (void)size;
    memory_is_short();
}
