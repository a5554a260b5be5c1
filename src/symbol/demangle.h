/* Names for people from the names that linkers see. */
#ifndef MALLOSCOPE_SYMBOL_DEMANGLE_H
#define MALLOSCOPE_SYMBOL_DEMANGLE_H

#include "symbol/result_pool.h"

#include <stdbool.h>

/* Whether `linkage` looks like the mangled name of a C++, Rust or D function. */
bool demangle_is_mangled(const char *linkage);

/* The name to show for a function with this linkage name (or NULL) and this source name (or NULL; without its
 * namespaces); not both NULL. Parts that a compiler split off (`f.cold`, `f.part.0`) are named like the
 * function, Rust's hashes and symbol versions are cut. Owned by the pool. */
const char *demangle_name(struct result_pool *pool, const char *linkage, const char *name);

#endif
