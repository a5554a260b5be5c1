/* A library that is opened with RTLD_DEEPBIND: it finds the C library's functions before those of the program. It frees
 * blocks of the program in every way that leads to free: calls, pointers in data, pointers found by dlsym; in its
 * constructor, its destructor and in between. With OUTER its constructor opens another such library, whose path is in
 * the environment. */
#define _GNU_SOURCE
#include "deep_library.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Addresses that the dynamic linker stores in the library's data. */
static void (*volatile stored_free)(void *) = free;
static void *(*volatile stored_realloc)(void *, size_t) = realloc;

/* The program's blocks for this library; NULL: none is left. The program defines it. */
extern void *deep_take(void);

/* The C library's second name for free. */
extern void __libc_free(void *block);

static void release(void *block, unsigned way) {
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    void (*by_next)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    void (*by_libc)(void *) = (void (*)(void *))dlsym(libc, "free");
    switch (way % DEEP_WAYS) {
    case 0:
        free(block);
        break;
    case 1:
        stored_free(block);
        break;
    case 2:
        by_next(block);
        break;
    case 3:
        by_libc(block);
        break;
    case 4:
        __libc_free(block);
        break;
    case 5:
        free(realloc(block, 3000));
        break;
    case 6:
        stored_free(stored_realloc(block, 10));
        break;
    case 7:
        if (malloc_usable_size(block) < DEEP_LEAST) abort();
        free(reallocarray(block, 30, 30));
        break;
    }
    dlclose(libc);
}

static unsigned release_taken(unsigned most) {
    void *block;
    unsigned count = 0;
    while (count < most && (block = deep_take())) release(block, count++);
    return count;
}

/* Its own blocks, which mix with the program's in the allocator. */
static void use_own(void) {
    void *aligned;
    free(strdup("a text"));
    free(calloc(3, 50));
    free(aligned_alloc(64, 640));
    if (posix_memalign(&aligned, 256, 1000) != 0) abort();
    free(realloc(aligned, 5000));
    free(valloc(100));
}

unsigned deep_release(unsigned most) {
    use_own();
    return release_taken(most);
}

void *deep_allocate(size_t size) {
    return malloc(size);
}

#ifdef OUTER
static void *inner;
__attribute__((constructor)) static void open_inner(void) {
    inner = dlopen(getenv("DEEP_INNER"), RTLD_LAZY | RTLD_DEEPBIND);
    if (!inner) abort();
}
#endif

__attribute__((constructor)) static void begin(void) {
    deep_release(10 * DEEP_WAYS);
}

__attribute__((destructor)) static void end(void) {
    deep_release(10 * DEEP_WAYS);
#ifdef OUTER
    dlclose(inner);
#endif
}
