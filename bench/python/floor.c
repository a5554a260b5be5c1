/* The least that seeing Python's objects can cost: functions in front of the interpreter's allocator, where
 * malloscope puts its own for --python-objects, which only jump on. To be preloaded. */
#include <dlfcn.h>
#include <stddef.h>

struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
};

enum domain { DOMAIN_MEMORY = 1, DOMAIN_OBJECTS = 2 };

static struct allocator below[3];

static void *pass_malloc(void *context, size_t size) {
    const struct allocator *next = context;
    return next->malloc(next->context, size);
}

static void *pass_calloc(void *context, size_t count, size_t size) {
    const struct allocator *next = context;
    return next->calloc(next->context, count, size);
}

static void *pass_realloc(void *context, void *block, size_t size) {
    const struct allocator *next = context;
    return next->realloc(next->context, block, size);
}

static void pass_free(void *context, void *block) {
    const struct allocator *next = context;
    next->free(next->context, block);
}

static __attribute__((constructor)) void put_in_front(void) {
    void (*get)(int domain, struct allocator *), (*set)(int domain, struct allocator *);
    *(void **)&get = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&set = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    for (int domain = DOMAIN_MEMORY; get && set && domain <= DOMAIN_OBJECTS; domain++) {
        struct allocator pass = {&below[domain], pass_malloc, pass_calloc, pass_realloc, pass_free};
        get(domain, &below[domain]);
        set(domain, &pass);
    }
}
