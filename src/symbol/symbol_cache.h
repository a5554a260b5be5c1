/* Resolved addresses, kept on disk from one command to the next: a file for each program or library, found by
 * its build-id.
 *
 * What is kept came from debug info, and is good for as long as the file that was mapped and the debug file
 * are what they were, and for the very build of malloscope that wrote it. What came without debug info is not
 * kept, so that debug info that is installed later is found.
 *
 * The cache never makes a command fail: what cannot be read, or is damaged, is not there; what cannot be
 * written is not kept. Files are written aside and renamed, so processes that work on one at the same time
 * lose additions at worst. The folder is kept below a size, what was not used for longest goes first. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_CACHE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_CACHE_H

#include "symbol/symbol_file.h"

/* All files of the cache together. */
#define SYMBOL_CACHE_SIZE_MAX (UINT64_C(512) << 20)

struct symbol_cache;

/* The user's folder for it, made if need be, or NULL if there can be none. The caller frees it. */
char *symbol_cache_folder(void);

/* What is known about `file`, which is mapped as `module`, or nothing yet. NULL if it cannot be kept:
 * without a build-id. */
struct symbol_cache *symbol_cache_open(
    const char *folder, const struct model_module *module, const struct symbol_file *file);

/* What is kept for a link-time address, made in `pool`, or NULL. Good until the cache is closed. */
const struct symbol *symbol_cache_find(
    const struct symbol_cache *cache, uint64_t address, struct result_pool *pool, size_t *ret_count);

/* Keeps more: what was found in the file itself at `address`. It must stay where it is until
 * symbol_cache_save. */
void symbol_cache_add(
    struct symbol_cache *cache, uint64_t address, const struct symbol *frames, size_t count);

/* Writes what was added, if it came from debug info. */
void symbol_cache_save(struct symbol_cache *cache, struct symbol_file *file);
void symbol_cache_close(struct symbol_cache *cache);

/* Removes the files of a cache folder that were not used for longest, until the rest is no larger than
 * `size_max`. */
void symbol_cache_trim(const char *folder, uint64_t size_max);

#endif
