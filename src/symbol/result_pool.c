#include "symbol/result_pool.h"

#include "base/memory.h"

#include <libiberty/hashtab.h>
#include <libiberty/objalloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result_pool {
    struct objalloc *memory;
    htab_t texts;
};

struct result_pool *result_pool_new(void) {
    struct result_pool *pool = memory_allocate(sizeof *pool);
    pool->memory = objalloc_create();
    if (!pool->memory) memory_is_short();
    pool->texts = htab_create(1024, htab_hash_string, htab_eq_string, NULL);
    return pool;
}

void result_pool_free(struct result_pool *pool) {
    if (!pool) return;
    htab_delete(pool->texts);
    objalloc_free(pool->memory);
    free(pool);
}

void *result_pool_allocate(struct result_pool *pool, size_t size) {
    void *memory = objalloc_alloc(pool->memory, size);
    if (!memory) memory_is_short();
    return memset(memory, 0, size);
}

const char *result_pool_text(struct result_pool *pool, const char *text) {
    if (!text) return NULL;
    void **slot = htab_find_slot(pool->texts, text, INSERT);
    if (!*slot) {
        size_t size = strlen(text) + 1;
        *slot = memcpy(result_pool_allocate(pool, size), text, size);
    }
    return *slot;
}

const char *result_pool_line(struct result_pool *pool, const char *text) {
    char *line = memory_copy_text(text);
    for (char *end = line; (end = strchr(end, '\n'));) *end = '?';
    const char *kept = result_pool_text(pool, line);
    free(line);
    return kept;
}

const char *result_pool_format(struct result_pool *pool, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = memory_format_arguments(format, arguments);
    va_end(arguments);
    const char *kept = result_pool_text(pool, text);
    free(text);
    return kept;
}

struct result_pool *result_pool_list_add(struct result_pool_list *pools) {
    pools->list = memory_reallocate(pools->list, (pools->count + 1) * sizeof *pools->list);
    return pools->list[pools->count++] = result_pool_new();
}

void result_pool_list_free(struct result_pool_list *pools) {
    for (size_t i = 0; i < pools->count; i++) result_pool_free(pools->list[i]);
    free(pools->list);
    *pools = (struct result_pool_list){0};
}
