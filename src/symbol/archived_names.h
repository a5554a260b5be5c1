/* The names in the archives that the recordings were read from (model/archive.h). */
#ifndef MALLOSCOPE_SYMBOL_ARCHIVED_NAMES_H
#define MALLOSCOPE_SYMBOL_ARCHIVED_NAMES_H

#include "model/model.h"
#include "symbol/result_pool.h"
#include "symbol/symbol.h"

struct archived_names;

/* The results live in `pool` and in the model. */
struct archived_names *archived_names_new(const struct model *model, struct result_pool *pool);
void archived_names_free(struct archived_names *names);

/* Fills `list`, except its module. False if the archive has no entry for the frame word. */
bool archived_names_find(
    const struct archived_names *names, uint32_t process, uint64_t word, struct symbol_list *list);

/* The path of the archive that has names for code of this module, or NULL. */
const char *archived_names_of(const struct archived_names *names, const struct model_module *module);

/* What is wrong with the archived names, one sentence a line, or NULL. */
const char *archived_names_warning(const struct archived_names *names);

#endif
