/* A symbol store: frames by key, as one block of bytes that can be written to a file and read again.
 *
 *     head │ entries, sorted by space and key │ frames │ texts
 *             └─ first frame, count ───────────►└─ offsets ►
 *
 * A key is an address, or another number that stands for frames. Spaces keep the keys of several processes apart.
 * The bytes may come from an untrusted file: they are checked once, when the store is opened. */
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

/* The first three members are offsets into the store's texts; 0: none. */
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

/* `bytes` must be aligned to 8, and outlive the store and the frames that are found in it. They are changed into
 * a form that can be opened again but compresses less well. False if they are no store, or a damaged one. */
bool symbol_store_open(struct symbol_store *store, void *bytes, size_t size);

/* The entry of `key`, or NULL. */
const struct store_entry *symbol_store_find(const struct symbol_store *store, uint32_t space, uint64_t key);

/* The entry of the space with the smallest key that is not less than `key`, or NULL. */
const struct store_entry *symbol_store_next(const struct symbol_store *store, uint32_t space, uint64_t key);

/* The frames of an entry. They live in `pool`, and their texts in the store. */
const struct symbol *symbol_store_frames(
    const struct symbol_store *store, const struct store_entry *entry, struct result_pool *pool);

struct symbol_store_writer;

struct symbol_store_writer *symbol_store_writer_new(void);
void symbol_store_writer_free(struct symbol_store_writer *writer);

/* Adds an entry. The frames must not move before symbol_store_writer_finish, which reads them. Entries that are
 * given the same pointer share their frames. */
void symbol_store_writer_add(struct symbol_store_writer *writer, uint32_t space, uint64_t key,
    uint64_t module_address, const struct symbol *frames, size_t count);

/* The store with all that was added. Of a key that was added twice, one entry is written. The caller frees the
 * bytes. NULL if they would be more than the format allows. */
void *symbol_store_writer_finish(struct symbol_store_writer *writer, size_t *ret_size);

#endif
