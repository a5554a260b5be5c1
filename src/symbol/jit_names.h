/* Names for addresses in no file, from the maps that the recorded processes' JIT compilers left in /tmp.
 *
 * Everybody may write to /tmp. A map counts if it belongs to the user, to root or to the owner of the
 * recording, and is not older than the process: another one may have had its number. */
#ifndef MALLOSCOPE_SYMBOL_JIT_NAMES_H
#define MALLOSCOPE_SYMBOL_JIT_NAMES_H

#include "model/model.h"
#include "symbol/result_pool.h"
#include "symbol/symbol.h"

struct jit_names;

/* The results live in `pool`. */
struct jit_names *jit_names_new(const struct model *model, struct result_pool *pool);
void jit_names_free(struct jit_names *names);

/* Looks for maps in the /tmp below this folder first; a map there is believed. NULL = nowhere else. */
void jit_names_set_sysroot(struct jit_names *names, const char *sysroot);

/* What the code at `address` of the process is called, or NULL. A forked process has its parent's code. */
const struct symbol *jit_names_find(struct jit_names *names, uint32_t process, uint64_t address);

/* What is wrong with the maps that were wanted, one sentence a line, or NULL. */
const char *jit_names_warning(struct jit_names *names);

#endif
