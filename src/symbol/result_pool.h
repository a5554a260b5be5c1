/* A pool of memory for the results of a resolver, frames and texts, which are freed all at once.
 *
 * Equal texts are kept once, so a file name that is used again takes no memory, and two texts of
 * one pool are equal exactly if their pointers are. A pool belongs to one thread. */
#ifndef MALLOSCOPE_SYMBOL_RESULT_POOL_H
#define MALLOSCOPE_SYMBOL_RESULT_POOL_H

#include <stddef.h>

struct result_pool;

struct result_pool *result_pool_new(void);
void result_pool_free(struct result_pool *pool);

/* Zeroed memory, aligned for pointers and 64-bit integers. */
void *result_pool_allocate(struct result_pool *pool, size_t size);

/* The pool's copy of `text`. NULL for NULL. */
const char *result_pool_text(struct result_pool *pool, const char *text);
/* The same for a text of one line: line breaks become '?'. */
const char *result_pool_line(struct result_pool *pool, const char *text);
const char *result_pool_format(struct result_pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Several pools, one for each thread that has found results. All zero is an empty list. */
struct result_pool_list {
    struct result_pool **list;
    size_t count;
};

/* Adds a new pool, which the list owns. */
struct result_pool *result_pool_list_add(struct result_pool_list *pools);
void result_pool_list_free(struct result_pool_list *pools);

#endif
