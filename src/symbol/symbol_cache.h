/* A cache of resolved addresses on disk, for the next command. There is one cache file for each program or
 * library, named after its build-id.
 *
 * Only frames from debug info are stored. They are valid as long as three files are unchanged: the program or
 * library, its debug file, and the malloscope executable that wrote them. All are the very files: a copy counts as
 * another file, since somebody else may have made it. Files of users other than root and the own one are not kept
 * names of. Frames that were found without debug
 * info are not stored, so that debug info that is installed later is found.
 *
 * The cache never makes a command fail. A cache file that cannot be read or is damaged counts as missing; what
 * cannot be written is not stored. A cache file is written under another name and then renamed: two commands that
 * write it at the same time may lose each other's additions, but never damage it. When the folder grows beyond
 * SYMBOL_CACHE_SIZE_MAX, the least recently used files are removed. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_CACHE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_CACHE_H

#include "symbol/symbol_file.h"

/* The most bytes that all cache files may take together. */
#define SYMBOL_CACHE_SIZE_MAX (UINT64_C(512) << 20)

struct symbol_cache;

/* The user's folder for the cache, which is created if need be. NULL if there can be none. The caller frees it. */
char *symbol_cache_folder(void);

/* Opens the cache of `file`, from which `module` was mapped; it may be empty. NULL if there can be none, because
 * the module has no build-id or the file was not found. */
struct symbol_cache *symbol_cache_open(
    const char *folder, const struct model_module *module, const struct symbol_file *file);

/* The frames that are stored for a link-time address, or NULL. They live in `pool`; their texts are good until
 * the cache is closed. */
const struct symbol *symbol_cache_find(
    const struct symbol_cache *cache, uint64_t address, struct result_pool *pool, size_t *ret_count);

/* Adds frames that were found in the file itself at `address`. They must not move before symbol_cache_save. */
void symbol_cache_add(
    struct symbol_cache *cache, uint64_t address, const struct symbol *frames, size_t count);

/* Writes the cache file with what was added, if the file has complete debug info. */
void symbol_cache_save(struct symbol_cache *cache, struct symbol_file *file);
void symbol_cache_close(struct symbol_cache *cache);

/* Removes the least recently used files of a cache folder until the others take at most `size_max` bytes. */
void symbol_cache_trim(const char *folder, uint64_t size_max);

#endif
