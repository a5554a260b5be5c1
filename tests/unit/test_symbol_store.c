/* What addresses stand for survives being made into bytes; bytes that are not that are refused. */
#include "check.h"
#include "symbol/symbol_store.h"

#include <stdlib.h>

static const struct symbol inlined_frames[] = {
    {.function = "inner(int)", .linkage = "_Z5inneri", .file = "/src/a.cpp", .line = 7, .inlined = true},
    {.function = "outer()", .linkage = "_Z5outerv", .file = "/src/a.cpp", .line = 12, .function_line = 10},
};
static const struct symbol plain_frame = {.function = "[libx.so+0x12]"};

static void *make_store(size_t *ret_size) {
    struct symbol_store_writer *writer = symbol_store_writer_new();
    symbol_store_writer_add(writer, 1, 50, 0x1050, &plain_frame, 1);
    symbol_store_writer_add(writer, 0, 70, 0x1070, inlined_frames, 2);
    symbol_store_writer_add(writer, 0, 50, 0x2050, inlined_frames, 2);
    symbol_store_writer_add(writer, 0, 70, 0x9999, &plain_frame, 1); /* twice */
    void *bytes = symbol_store_writer_finish(writer, ret_size);
    symbol_store_writer_free(writer);
    return bytes;
}

static void check_frames(const struct symbol *found, const struct symbol *expected, size_t count) {
    for (size_t i = 0; i < count; i++) {
        CHECK_TEXT(found[i].function, expected[i].function);
        CHECK((found[i].linkage == NULL) == (expected[i].linkage == NULL));
        if (expected[i].linkage) CHECK_TEXT(found[i].linkage, expected[i].linkage);
        CHECK((found[i].file == NULL) == (expected[i].file == NULL));
        if (expected[i].file) CHECK_TEXT(found[i].file, expected[i].file);
        CHECK_EQUAL(found[i].line, expected[i].line);
        CHECK_EQUAL(found[i].function_line, expected[i].function_line);
        CHECK_EQUAL(found[i].inlined, expected[i].inlined);
    }
}

static void what_is_put_in_comes_out(void) {
    size_t size;
    void *bytes = make_store(&size);
    struct symbol_store store;
    struct result_pool *pool = result_pool_new();
    if (!CHECK(symbol_store_open(&store, bytes, size))) return;
    CHECK_EQUAL(store.entry_count, 3);
    const struct store_entry *entry = symbol_store_find(&store, 0, 50);
    if (CHECK(entry && entry->frame_count == 2)) {
        CHECK_EQUAL(entry->module_address, 0x2050);
        check_frames(symbol_store_frames(&store, entry, pool), inlined_frames, 2);
    }
    entry = symbol_store_find(&store, 1, 50);
    if (CHECK(entry && entry->frame_count == 1))
        check_frames(symbol_store_frames(&store, entry, pool), &plain_frame, 1);
    CHECK(symbol_store_find(&store, 0, 70) != NULL);
    CHECK(symbol_store_find(&store, 1, 70) == NULL);
    CHECK(symbol_store_find(&store, 2, 50) == NULL);
    CHECK(symbol_store_find(&store, 0, 60) == NULL);
    result_pool_free(pool);
    free(bytes);
}

static void a_store_may_be_empty(void) {
    struct symbol_store_writer *writer = symbol_store_writer_new();
    size_t size;
    void *bytes = symbol_store_writer_finish(writer, &size);
    struct symbol_store store;
    CHECK(symbol_store_open(&store, bytes, size) && !symbol_store_find(&store, 0, 0));
    symbol_store_writer_free(writer);
    free(bytes);
}

static void many_are_found(void) {
    enum { COUNT = 20000 };
    struct result_pool *pool = result_pool_new();
    struct symbol_store_writer *writer = symbol_store_writer_new();
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t key = i * 7919 % COUNT * 3;
        struct symbol *frame = result_pool_allocate(pool, sizeof *frame);
        frame->function = result_pool_format(pool, "function_%llu", (unsigned long long)key);
        symbol_store_writer_add(writer, 0, key, key, frame, 1);
    }
    size_t size;
    void *bytes = symbol_store_writer_finish(writer, &size);
    struct symbol_store store;
    if (!CHECK(symbol_store_open(&store, bytes, size))) return;
    size_t wrong = 0;
    for (uint64_t key = 0; key < 3 * COUNT; key++) {
        const struct store_entry *entry = symbol_store_find(&store, 0, key);
        char expected[64];
        snprintf(expected, sizeof expected, "function_%llu", (unsigned long long)key);
        if (key % 3 ? entry != NULL
                    : !entry || strcmp(symbol_store_frames(&store, entry, pool)->function, expected) != 0)
            wrong++;
    }
    CHECK_EQUAL(wrong, 0);
    symbol_store_writer_free(writer);
    result_pool_free(pool);
    free(bytes);
}

/* Reads everything: under the sanitizer what lies outside is found out. */
static size_t read_all(const struct symbol_store *store) {
    struct result_pool *pool = result_pool_new();
    size_t length = 0;
    for (size_t i = 0; i < store->entry_count; i++) {
        const struct symbol *frames = symbol_store_frames(store, &store->entries[i], pool);
        for (uint32_t k = 0; k < store->entries[i].frame_count; k++)
            length += strlen(frames[k].function) + (frames[k].file ? strlen(frames[k].file) : 0) +
                      (frames[k].linkage ? strlen(frames[k].linkage) : 0);
    }
    result_pool_free(pool);
    return length;
}

static void damaged_bytes_are_refused_or_harmless(void) {
    size_t size, refused = 0;
    char *bytes = make_store(&size);
    for (size_t cut = 0; cut < size; cut++) {
        char *copy = malloc(cut ? cut : 1); /* exactly as long */
        memcpy(copy, bytes, cut);
        struct symbol_store store;
        CHECK(!symbol_store_open(&store, copy, cut));
        free(copy);
    }
    srand(1);
    for (int round = 0; round < 20000; round++) {
        char *copy = malloc(size);
        memcpy(copy, bytes, size);
        for (int i = 0; i < 1 + round % 3; i++) copy[(size_t)rand() % size] = (char)rand();
        struct symbol_store store;
        if (symbol_store_open(&store, copy, size))
            read_all(&store);
        else
            refused++;
        free(copy);
    }
    CHECK(refused > 1000);
    free(bytes);
}

int main(void) {
    what_is_put_in_comes_out();
    a_store_may_be_empty();
    many_are_found();
    damaged_bytes_are_refused_or_harmless();
    return check_result();
}
