/* An ELF file that was mapped into the recorded program: from an address in it to frames. */
#ifndef MALLOSCOPE_SYMBOL_OBJECT_H
#define MALLOSCOPE_SYMBOL_OBJECT_H

#include "symbol/object_search.h"
#include "symbol/pool.h"
#include "symbol/symbol.h"

struct object;

/* Opens what `module` was mapped from. Always gives an object; object_trouble says if it has no names. The
 * results live in `pool`. */
struct object *object_open(struct pool *pool, const struct model_module *module, const struct search *search);
void object_close(struct object *object);

/* Whether there is a file that can be asked. */
bool object_is_found(const struct object *object);
enum object_trouble object_trouble(const struct object *object);

/* What names it has and from which file, or why it has none, for people. */
const char *object_describe(struct object *object);

/* The file's name without folders. */
const char *object_name(const struct object *object);

/* The link-time address of `address`, which lies in `module`, a mapping of this object. If the file is not
 * known it is the offset in the file. */
uint64_t object_link_address(
    const struct object *object, const struct model_module *module, uint64_t address);

/* What the code at the link-time address stands for. Found once each. `*ret_count` is 1 or more. */
const struct symbol *object_find(struct object *object, uint64_t link_address, size_t *ret_count);

#endif
