/* Names for code that is in no file, from the maps that JIT compilers write to /tmp (jit_map.h).
 *
 * Everybody may write to /tmp. So a map counts only if it belongs to the user, to root or to the user whose
 * program was recorded, and if it is not older than the process: an earlier process may have had the same number. */
#ifndef MALLOSCOPE_SYMBOL_JIT_NAMES_H
#define MALLOSCOPE_SYMBOL_JIT_NAMES_H

#include "model/model.h"
#include "symbol/result_pool.h"
#include "symbol/symbol.h"

struct jit_names;

/* The results live in `pool`. */
struct jit_names *jit_names_new(const struct model *model, struct result_pool *pool);
void jit_names_free(struct jit_names *names);

/* Looks for maps in the /tmp below this folder first. Maps found there are used without the two checks. */
void jit_names_set_sysroot(struct jit_names *names, const char *sysroot);

/* The symbol of the code at `address` of the process, or NULL. For a forked process the parent's map is searched,
 * too: the code was inherited. */
const struct symbol *jit_names_find(struct jit_names *names, uint32_t process, uint64_t address);

/* What is wrong with the maps that were needed so far, one sentence a line, or NULL. */
const char *jit_names_warning(struct jit_names *names);

#endif
