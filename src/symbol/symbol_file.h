/* An ELF file that was mapped into the recorded program: from an address in it to frames. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_FILE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_FILE_H

#include "symbol/symbol_file_search.h"
#include "symbol/result_pool.h"
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

/* Where the debug info comes from. */
struct debug_info {
    const char *path; /* of a separate file, NULL: the object itself. Owned by the object */
    bool is_whole;    /* false: part of it lies in files that are not here */
};

/* False if there is none. */
bool object_debug_info(struct object *object, struct debug_info *ret_info);

/* The version of the file itself; all zero if it was not found. */
struct file_version object_version(const struct object *object);

/* Another reader of the object, for another thread: object_read_second is called there, first of all. Its
 * results live in a pool of its own. It is closed before the first one. NULL if there is no debug info: what
 * comes without is fast. */
struct object *object_open_second(struct object *object, struct pool *pool);
void object_read_second(struct object *second);

#endif
