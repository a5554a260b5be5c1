/* The memory of a resolver: results and texts, given back all at once.
 *
 * Equal texts are kept once, so a file name costs nothing from its second use on. Running out of memory ends
 * the tool (base/memory.h). */
#ifndef MALLOSCOPE_SYMBOL_RESULT_POOL_H
#define MALLOSCOPE_SYMBOL_RESULT_POOL_H

#include <stddef.h>

struct result_pool;

struct result_pool *result_pool_new(void);
void result_pool_free(struct result_pool *pool);

/* Zeroed memory, aligned for anything that holds pointers and 64-bit integers. */
void *result_pool_allocate(struct result_pool *pool, size_t size);

/* The pool's copy of `text`; NULL stays NULL. */
const char *result_pool_text(struct result_pool *pool, const char *text);
const char *result_pool_format(struct result_pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
