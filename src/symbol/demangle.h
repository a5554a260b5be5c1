/* Names of functions for people, from linkage names. */
#ifndef MALLOSCOPE_SYMBOL_DEMANGLE_H
#define MALLOSCOPE_SYMBOL_DEMANGLE_H

#include "symbol/result_pool.h"

#include <stdbool.h>

/* Whether `linkage` looks like the mangled name of a C++, Rust or D function. */
bool demangle_is_mangled(const char *linkage);

/* The name to show for a function. `linkage` is its linkage name, `name` its name in the source without
 * namespaces; one of them may be NULL. A part that the compiler split off (`f.cold`, `f.part.0`) gets the name of
 * the function. Rust's hashes and symbol versions are removed. What expands beyond all bounds (bounded_demangler.h)
 * stays mangled. Owned by the pool. */
const char *demangle_name(struct result_pool *pool, const char *linkage, const char *name);

#endif
