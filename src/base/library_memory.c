/* Memory for the libraries that the tool uses.
 *
 * The tool's own code notices that there is no memory, and says what it was about to do. Some libraries crash
 * instead: libdw asserts that its hash tables grow, and reads through pointers that it got from malloc. So
 * what they ask for passes here, and the command ends with a message where there is none. */
#include "base/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <libiberty/libiberty.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Who asks for more than this has been misled by a damaged file, and reckons with a refusal. */
#define SANE_MOST (UINT64_C(1) << 30)

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
} next;

static void find_next(void) {
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
}

static bool is_own_code(const void *address) {
    extern const char __executable_start, etext;
    return (uintptr_t)address - (uintptr_t)&__executable_start <
           (uintptr_t)&etext - (uintptr_t)&__executable_start;
}

static void *checked(void *memory, size_t size, const void *caller) {
    if (!memory && size && size <= SANE_MOST && !is_own_code(caller)) memory_is_short();
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

/* libiberty's, which is linked into the command: its own end it in a way of their own. */

void *xmalloc(size_t size) {
    return memory_allocate(size);
}

void *xcalloc(size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) memory_is_short();
    return memory_allocate(whole);
}

void *xrealloc(void *block, size_t size) {
    return memory_reallocate(block, size);
}

void xmalloc_failed(size_t size) {
    (void)size;
    memory_is_short();
}
