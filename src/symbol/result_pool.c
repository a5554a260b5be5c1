#include "symbol/result_pool.h"

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>
#include <libiberty/objalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool {
    struct objalloc *memory;
    htab_t texts;
};

struct pool *pool_new(void) {
    struct pool *pool = xmalloc(sizeof *pool);
    pool->memory = objalloc_create();
    if (!pool->memory) xmalloc_failed(sizeof *pool->memory);
    pool->texts = htab_create(1024, htab_hash_string, htab_eq_string, NULL);
    return pool;
}

void pool_free(struct pool *pool) {
    if (!pool) return;
    htab_delete(pool->texts);
    objalloc_free(pool->memory);
    free(pool);
}

void *pool_allocate(struct pool *pool, size_t size) {
    void *memory = objalloc_alloc(pool->memory, size);
    if (!memory) xmalloc_failed(size);
    return memset(memory, 0, size);
}

const char *pool_text(struct pool *pool, const char *text) {
    if (!text) return NULL;
    void **slot = htab_find_slot(pool->texts, text, INSERT);
    if (!*slot) {
        size_t size = strlen(text) + 1;
        *slot = memcpy(pool_allocate(pool, size), text, size);
    }
    return *slot;
}

const char *pool_format(struct pool *pool, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) xmalloc_failed(strlen(format));
    va_end(arguments);
    const char *kept = pool_text(pool, text);
    free(text);
    return kept;
}
