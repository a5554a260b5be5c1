/* What addresses stand for, as one piece of bytes: for a file, and back.
 *
 *     head │ entries, sorted by space and key │ frames │ texts
 *             └─ first frame, count ───────────►└─ offsets ►
 *
 * A key is an address, or any other number that stands for frames; spaces keep the keys of several processes
 * apart. The bytes may come from anywhere: they are checked once, when the store is opened. */
#ifndef MALLOSCOPE_SYMBOL_SYMBOL_STORE_H
#define MALLOSCOPE_SYMBOL_SYMBOL_STORE_H

#include "symbol/result_pool.h"
#include "symbol/symbol.h"

struct store_entry {
    uint64_t key;
    uint64_t module_address;
    uint32_t space;
    uint32_t first_frame;
    uint32_t frame_count;
    uint32_t reserved;
};

/* Texts are offsets into the store's texts; 0 = none. */
struct store_frame {
    uint32_t function, linkage, file;
    int32_t line, function_line;
    uint32_t inlined;
};

struct symbol_store {
    const struct store_entry *entries;
    const struct store_frame *frames;
    const char *texts;
    size_t entry_count;
};

/* `bytes` (aligned to 8) must outlive the store and what is found in it; they are changed into a form that
 * can be opened again, but not packed as well. False if they are not a store, or a damaged one. */
bool symbol_store_open(struct symbol_store *store, void *bytes, size_t size);

/* What `key` stands for, or NULL. */
const struct store_entry *symbol_store_find(const struct symbol_store *store, uint32_t space, uint64_t key);

/* The first entry of the space from `key` on, or NULL. */
const struct store_entry *symbol_store_next(const struct symbol_store *store, uint32_t space, uint64_t key);

/* The frames of an entry, made in `pool`; their texts are those of the store. */
const struct symbol *symbol_store_frames(
    const struct symbol_store *store, const struct store_entry *entry, struct result_pool *pool);

struct symbol_store_writer;

struct symbol_store_writer *symbol_store_writer_new(void);
void symbol_store_writer_free(struct symbol_store_writer *writer);

/* The frames must stay until the end: they are written then, and those that are the same are recognised by
 * where they are. */
void symbol_store_writer_add(struct symbol_store_writer *writer, uint32_t space, uint64_t key,
    uint64_t module_address, const struct symbol *frames, size_t count);

/* The store of all that was added; of a key that was added twice, one. The caller frees it. NULL if it would
 * be larger than the format allows. */
void *symbol_store_writer_finish(struct symbol_store_writer *writer, size_t *ret_size);

#endif
