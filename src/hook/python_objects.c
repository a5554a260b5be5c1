#define MSCOPE_LINKED
#include "hook/python_objects.h"

#include "hook/own_heaps.h"
#include "malloscope.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define PYTHON_HEAP "python objects" /* HEAP_PYTHON of the model */
#define SMALL_MOST  512 /* the interpreter leaves larger ones to malloc, where they are seen anyway */

/* What the interpreter calls for each of its domains (PyMemAllocatorEx). */
struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

enum domain { DOMAIN_MEMORY = 1, DOMAIN_OBJECTS = 2 };

static struct allocator below[3];
static mscope_heap heap;

static bool is_small(size_t size) {
    return size - 1 < SMALL_MOST;
}

static void *object_malloc(void *context, size_t size) {
    const struct allocator *next = context;
    void *block = next->malloc(next->context, size);
    return block && is_small(size) ? hook_heap_given(heap, block, size) : block;
}

static void *object_calloc(void *context, size_t count, size_t size) {
    const struct allocator *next = context;
    void *block = next->calloc(next->context, count, size);
    return block && is_small(count * size) ? hook_heap_given(heap, block, count * size) : block;
}

/* The old block is forgotten first: its place may be given to another thread's before the call returns. A
 * resize that fails leaves it alive and uncounted, which is rare. */
static void *object_realloc(void *context, void *block, size_t size) {
    const struct allocator *next = context;
    own_heap_forget(heap, block);
    void *resized = next->realloc(next->context, block, size);
    return resized && is_small(size) ? hook_heap_given(heap, resized, size) : resized;
}

static void object_free(void *context, void *block) {
    const struct allocator *next = context;
    own_heap_forget(heap, block);
    next->free(next->context, block);
}

void python_objects_start(void) {
    void (*get)(int domain, struct allocator *), (*set)(int domain, struct allocator *);
    *(void **)&get = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&set = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    if (!get || !set) {
        dlerror();
        return;
    }
    heap = mscope_heap_register(PYTHON_HEAP, NULL);
    for (int domain = DOMAIN_MEMORY; heap && domain <= DOMAIN_OBJECTS; domain++) {
        struct allocator ours = {&below[domain], object_malloc, object_calloc, object_realloc, object_free};
        get(domain, &below[domain]);
        set(domain, &ours);
    }
}
