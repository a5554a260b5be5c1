/* The memory of a resolver: results and texts, given back all at once.
 *
 * Equal texts are kept once, so a file name costs nothing from its second use on. Running out of memory ends
 * the tool (libiberty's xmalloc). */
#ifndef MALLOSCOPE_SYMBOL_RESULT_POOL_H
#define MALLOSCOPE_SYMBOL_RESULT_POOL_H

#include <stddef.h>

struct pool;

struct pool *pool_new(void);
void pool_free(struct pool *pool);

/* Zeroed memory, aligned for anything that holds pointers and 64-bit integers. */
void *pool_allocate(struct pool *pool, size_t size);

/* The pool's copy of `text`; NULL stays NULL. */
const char *pool_text(struct pool *pool, const char *text);
const char *pool_format(struct pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
