#include "symbol/symbol_store.h"

#include "base/memory.h"

#include <libiberty/hashtab.h>
#include <stdlib.h>
#include <string.h>

#define STORE_MAGIC   "MSCNAME\n"
#define STORE_VERSION 1

struct store_head {
    char magic[8];
    uint32_t version;
    uint32_t has_differences; /* the entries are stored as differences (take_differences) */
    uint32_t entry_count;
    uint32_t frame_count;
    uint32_t text_size;
    uint32_t reserved;
};

/* Replaces entries by their differences from what the entry before suggests: an address in the same module, and
 * frames that follow that entry's frames. The differences are small numbers that often repeat: compressed, they
 * take a third. */
static void take_differences(struct store_entry *entries, size_t count) {
    for (size_t i = count; i-- > 1;) {
        struct store_entry *entry = &entries[i], *before = &entries[i - 1];
        entry->module_address -= before->module_address + (entry->key - before->key);
        entry->key -= before->key;
        entry->space -= before->space;
        entry->first_frame -= before->first_frame + before->frame_count;
    }
}

static void undo_differences(struct store_entry *entries, size_t count) {
    for (size_t i = 1; i < count; i++) {
        struct store_entry *entry = &entries[i], *before = &entries[i - 1];
        entry->module_address += before->module_address + entry->key;
        entry->key += before->key;
        entry->space += before->space;
        entry->first_frame += before->first_frame + before->frame_count;
    }
}

/* ---- reading ---- */

static bool text_fits(const struct store_head *head, uint32_t offset) {
    return offset < head->text_size; /* the last byte of the texts is zero, so every text ends */
}

static bool entries_fit(const struct store_head *head, const struct store_entry *entries) {
    for (uint32_t i = 0; i < head->entry_count; i++) {
        const struct store_entry *entry = &entries[i];
        if (entry->frame_count == 0 || entry->first_frame > head->frame_count ||
            entry->frame_count > head->frame_count - entry->first_frame)
            return false;
        if (i && (entry[-1].space > entry->space ||
                     (entry[-1].space == entry->space && entry[-1].key >= entry->key)))
            return false;
    }
    return true;
}

static bool frames_fit(const struct store_head *head, const struct store_frame *frames) {
    for (uint32_t i = 0; i < head->frame_count; i++) {
        const struct store_frame *frame = &frames[i];
        if (frame->function == 0 || !text_fits(head, frame->function) || !text_fits(head, frame->linkage) ||
            !text_fits(head, frame->file) || frame->inlined > 1)
            return false;
    }
    return true;
}

bool symbol_store_open(struct symbol_store *store, void *bytes, size_t size) {
    struct store_head *head = bytes;
    if (size < sizeof *head || memcmp(head->magic, STORE_MAGIC, sizeof head->magic) != 0 ||
        head->version != STORE_VERSION)
        return false;
    struct store_entry *entries = (void *)(head + 1);
    uint64_t entries_size = (uint64_t)head->entry_count * sizeof *entries;
    uint64_t frames_size = (uint64_t)head->frame_count * sizeof(struct store_frame);
    if (size != sizeof *head + entries_size + frames_size + head->text_size) return false;
    if (head->has_differences) undo_differences(entries, head->entry_count);
    head->has_differences = false;
    const struct store_frame *frames = (const void *)(entries + head->entry_count);
    const char *texts = (const void *)(frames + head->frame_count);
    if (head->text_size == 0 || texts[head->text_size - 1] != 0 || !entries_fit(head, entries) ||
        !frames_fit(head, frames))
        return false;
    *store = (struct symbol_store){entries, frames, texts, head->entry_count};
    return true;
}

const struct store_entry *symbol_store_next(const struct symbol_store *store, uint32_t space, uint64_t key) {
    size_t low = 0, high = store->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct store_entry *entry = &store->entries[middle];
        if (entry->space < space || (entry->space == space && entry->key < key))
            low = middle + 1;
        else
            high = middle;
    }
    return low < store->entry_count && store->entries[low].space == space ? &store->entries[low] : NULL;
}

const struct store_entry *symbol_store_find(const struct symbol_store *store, uint32_t space, uint64_t key) {
    const struct store_entry *entry = symbol_store_next(store, space, key);
    return entry && entry->key == key ? entry : NULL;
}

static const char *text_at(const struct symbol_store *store, uint32_t offset) {
    return offset ? store->texts + offset : NULL;
}

const struct symbol *symbol_store_frames(
    const struct symbol_store *store, const struct store_entry *entry, struct result_pool *pool) {
    struct symbol *symbols = result_pool_allocate(pool, entry->frame_count * sizeof *symbols);
    for (uint32_t i = 0; i < entry->frame_count; i++) {
        const struct store_frame *frame = &store->frames[entry->first_frame + i];
        symbols[i] = (struct symbol){
            .function = text_at(store, frame->function),
            .linkage = text_at(store, frame->linkage),
            .file = text_at(store, frame->file),
            .line = frame->line,
            .function_line = frame->function_line,
            .inlined = frame->inlined,
        };
    }
    return symbols;
}

/* ---- writing ---- */

/* Frames or a text that have been written already. */
struct written {
    const void *what; /* pointer to them */
    uint32_t where;   /* index of the first frame, or offset of the text; UINT32_MAX: not yet */
};

/* A buffer that grows. */
struct bytes {
    char *bytes;
    size_t size, room;
};

#define RECENT 1024

struct addition {
    struct store_entry entry; /* its first_frame is not known yet */
    const struct symbol *frames;
};

struct symbol_store_writer {
    struct bytes additions; /* struct addition */
    struct bytes entries, frames, texts;
    htab_t places;                 /* struct written: texts and frames by pointer */
    htab_t texts_by_content;       /* struct written: texts by their characters */
    struct written recent[RECENT]; /* texts by pointer: neighbours share texts */
    struct result_pool *pool;
    bool too_large;
};

static void bytes_add(struct bytes *bytes, const void *more, size_t size) {
    if (bytes->room - bytes->size < size) {
        bytes->room = 2 * bytes->room + size + 4096;
        bytes->bytes = memory_reallocate(bytes->bytes, bytes->room);
    }
    memcpy(bytes->bytes + bytes->size, more, size);
    bytes->size += size;
}

static hashval_t hash_place(const void *entry) {
    return htab_hash_pointer(((const struct written *)entry)->what);
}

static int same_place(const void *left, const void *right) {
    return ((const struct written *)left)->what == ((const struct written *)right)->what;
}

static hashval_t hash_text(const void *entry) {
    return htab_hash_string(((const struct written *)entry)->what);
}

static int same_text(const void *left, const void *right) {
    return strcmp(((const struct written *)left)->what, ((const struct written *)right)->what) == 0;
}

struct symbol_store_writer *symbol_store_writer_new(void) {
    struct symbol_store_writer *writer = memory_allocate(sizeof *writer);
    writer->pool = result_pool_new();
    writer->places = htab_create(4096, hash_place, same_place, NULL);
    writer->texts_by_content = htab_create(4096, hash_text, same_text, NULL);
    bytes_add(&writer->texts, "", 1); /* offset 0 means "none" */
    return writer;
}

void symbol_store_writer_free(struct symbol_store_writer *writer) {
    if (!writer) return;
    htab_delete(writer->places);
    htab_delete(writer->texts_by_content);
    result_pool_free(writer->pool);
    free(writer->additions.bytes);
    free(writer->entries.bytes);
    free(writer->frames.bytes);
    free(writer->texts.bytes);
    free(writer);
}

/* The note about `what` in `table`. A new note has UINT32_MAX as its place. */
static struct written *note(struct symbol_store_writer *writer, htab_t table, const void *what) {
    struct written key = {what, UINT32_MAX};
    void **slot = htab_find_slot(table, &key, INSERT);
    if (!*slot) {
        *slot = result_pool_allocate(writer->pool, sizeof key);
        *(struct written *)*slot = key;
    }
    return *slot;
}

static uint32_t find_text(struct symbol_store_writer *writer, const char *text) {
    struct written *here = note(writer, writer->places, text);
    if (here->where != UINT32_MAX) return here->where;
    struct written *same = note(writer, writer->texts_by_content, text);
    if (same->where == UINT32_MAX) {
        size_t size = strlen(text) + 1;
        if (writer->texts.size > UINT32_MAX - 1 - size) {
            writer->too_large = true;
            return 0;
        }
        same->where = (uint32_t)writer->texts.size;
        bytes_add(&writer->texts, text, size);
    }
    return here->where = same->where;
}

static uint32_t write_text(struct symbol_store_writer *writer, const char *text) {
    struct written *recent = &writer->recent[((uintptr_t)text >> 3) % RECENT];
    if (text && recent->what != text) *recent = (struct written){text, find_text(writer, text)};
    return text ? recent->where : 0;
}

static uint32_t write_frames(struct symbol_store_writer *writer, const struct symbol *frames, size_t count) {
    struct written *here = note(writer, writer->places, frames);
    if (here->where != UINT32_MAX) return here->where;
    size_t first = writer->frames.size / sizeof(struct store_frame);
    if (first + count >= UINT32_MAX) writer->too_large = true;
    for (size_t i = 0; i < count && !writer->too_large; i++) {
        struct store_frame frame = {
            .function = write_text(writer, frames[i].function),
            .linkage = write_text(writer, frames[i].linkage),
            .file = write_text(writer, frames[i].file),
            .line = frames[i].line,
            .function_line = frames[i].function_line,
            .inlined = frames[i].inlined,
        };
        bytes_add(&writer->frames, &frame, sizeof frame);
    }
    return here->where = (uint32_t)first;
}

void symbol_store_writer_add(struct symbol_store_writer *writer, uint32_t space, uint64_t key,
    uint64_t module_address, const struct symbol *frames, size_t count) {
    struct addition addition = {.frames = frames};
    addition.entry = (struct store_entry){
        .key = key, .module_address = module_address, .space = space, .frame_count = (uint32_t)count};
    bytes_add(&writer->additions, &addition, sizeof addition);
}

static int compare_additions(const void *left, const void *right) {
    const struct store_entry *a = &((const struct addition *)left)->entry;
    const struct store_entry *b = &((const struct addition *)right)->entry;
    if (a->space != b->space) return a->space < b->space ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

/* Writes the additions in the order of their keys, so that the frames of neighbouring addresses, which are
 * similar, are neighbours in the store and compress well. */
static void write_additions(struct symbol_store_writer *writer) {
    struct addition *additions = (void *)writer->additions.bytes;
    size_t count = writer->additions.size / sizeof *additions;
    if (count >= UINT32_MAX) writer->too_large = true;
    if (count) qsort(additions, count, sizeof *additions, compare_additions);
    for (size_t i = 0; i < count && !writer->too_large; i++) {
        struct addition *addition = &additions[i];
        if (i && compare_additions(addition - 1, addition) == 0) continue;
        addition->entry.first_frame = write_frames(writer, addition->frames, addition->entry.frame_count);
        bytes_add(&writer->entries, &addition->entry, sizeof addition->entry);
    }
}

void *symbol_store_writer_finish(struct symbol_store_writer *writer, size_t *ret_size) {
    write_additions(writer);
    if (writer->too_large) return NULL;
    struct store_entry *entries = (void *)writer->entries.bytes;
    size_t count = writer->entries.size / sizeof *entries;
    take_differences(entries, count);
    struct store_head head = {
        .magic = STORE_MAGIC,
        .version = STORE_VERSION,
        .has_differences = true,
        .entry_count = (uint32_t)count,
        .frame_count = (uint32_t)(writer->frames.size / sizeof(struct store_frame)),
        .text_size = (uint32_t)writer->texts.size,
    };
    struct bytes store = {0};
    bytes_add(&store, &head, sizeof head);
    if (count) bytes_add(&store, entries, writer->entries.size);
    if (writer->frames.size) bytes_add(&store, writer->frames.bytes, writer->frames.size);
    bytes_add(&store, writer->texts.bytes, writer->texts.size);
    *ret_size = store.size;
    return store.bytes;
}
