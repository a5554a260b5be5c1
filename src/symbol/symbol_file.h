/* An ELF file that was mapped into the recorded program: from an address in it to frames. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_FILE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_FILE_H

#include "symbol/result_pool.h"
#include "symbol/symbol.h"
#include "symbol/symbol_file_search.h"

struct symbol_file;

/* Opens what `module` was mapped from. Always gives a file; symbol_file_trouble says if it has no names. The
 * results live in `pool`. */
struct symbol_file *symbol_file_open(
    struct result_pool *pool, const struct model_module *module, const struct symbol_file_roots *roots);
void symbol_file_close(struct symbol_file *file);

/* Whether there is a file that can be asked. */
bool symbol_file_is_found(const struct symbol_file *file);
enum symbol_file_trouble symbol_file_trouble(const struct symbol_file *file);

/* What names it has and from which file, or why it has none, for people. */
const char *symbol_file_describe(struct symbol_file *file);

/* The file's name without folders. */
const char *symbol_file_name(const struct symbol_file *file);

/* The link-time address of `address`, which lies in `module`, a mapping of this file. If the file is not
 * known it is the offset in the file. */
uint64_t symbol_file_link_address(
    const struct symbol_file *file, const struct model_module *module, uint64_t address);

/* What the code at the link-time address stands for. Found once each. `*ret_count` is 1 or more. */
const struct symbol *symbol_file_find(struct symbol_file *file, uint64_t link_address, size_t *ret_count);

/* Where the debug info comes from. */
struct debug_info {
    const char *path; /* of a separate file, NULL: the file itself. Owned by the file */
    bool is_whole;    /* false: part of it lies in files that are not here */
};

/* False if there is none. */
bool symbol_file_debug_info(struct symbol_file *file, struct debug_info *ret_info);

/* The version of the file itself; all zero if it was not found. */
struct file_version symbol_file_version(const struct symbol_file *file);

/* Another reader of the file, for another thread: symbol_file_read_second is called there, first of all. Its
 * results live in a pool of its own. It is closed before the first one. NULL if there is no debug info: what
 * comes without is fast. */
struct symbol_file *symbol_file_open_second(struct symbol_file *file, struct result_pool *pool);
void symbol_file_read_second(struct symbol_file *second);

#endif
