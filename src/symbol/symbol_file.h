/* The ELF file from which a module was mapped, with its symbols: from an address in the file to frames. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_FILE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_FILE_H

#include "symbol/result_pool.h"
#include "symbol/symbol.h"
#include "symbol/symbol_file_search.h"

struct symbol_file;

/* Opens the file that `module` was mapped from. Never returns NULL: if the file was not found,
 * symbol_file_trouble says why, and all addresses get names such as "[libx.so+0x1234]". The results live in
 * `pool`. */
struct symbol_file *symbol_file_open(
    struct result_pool *pool, const struct model_module *module, const struct symbol_file_roots *roots);
void symbol_file_close(struct symbol_file *file);

/* Whether the file was found. */
bool symbol_file_is_found(const struct symbol_file *file);
enum symbol_file_trouble symbol_file_trouble(const struct symbol_file *file);

/* A text for people: which names the file has and where they come from, or why it has none. */
const char *symbol_file_describe(struct symbol_file *file);

/* The name of the file, without folders. */
const char *symbol_file_name(const struct symbol_file *file);

/* The link-time address of `address`, which lies in `module`, a mapping of this file. If the file was not found:
 * the offset in the file. */
uint64_t symbol_file_link_address(
    const struct symbol_file *file, const struct model_module *module, uint64_t address);

/* The frames that the code at a link-time address stands for; `*ret_count` is 1 or more. An address that was
 * asked for before gets the same frames without a new search. */
const struct symbol *symbol_file_find(struct symbol_file *file, uint64_t link_address, size_t *ret_count);

/* Where the debug info is. */
struct debug_info {
    const char *path; /* of a separate debug file; NULL: it is in the file itself. Owned by the symbol_file */
    bool is_whole;    /* false: parts of it are in other files, which do not exist here */
};

/* False if there is no debug info. */
bool symbol_file_debug_info(struct symbol_file *file, struct debug_info *ret_info);

/* The version of the file; all zero if it was not found. */
struct file_version symbol_file_version(const struct symbol_file *file);

/* A second reader of the file, for another thread. That thread must call symbol_file_read_second before anything
 * else. The results live in `pool`, which only that thread uses. The second reader is closed before the first
 * one. NULL if the file has no debug info: symbol tables are fast without a second thread. */
struct symbol_file *symbol_file_open_second(struct symbol_file *file, struct result_pool *pool);
void symbol_file_read_second(struct symbol_file *second);

#endif
