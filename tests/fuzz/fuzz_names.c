/* Names that come as text or bytes of their own. The first byte says which: 'm' a map of generated code as
 * JIT compilers write it for perf, 's' a store of names as archives and the cache hold it, 'd' names to be
 * demangled, one a line. */
#include "fuzz.h"

#include "symbol/demangle.h"
#include "symbol/jit_map.h"
#include "symbol/symbol_store.h"

static void read_map(const uint8_t *bytes, size_t size) {
    char *text = input_text(bytes, size);
    struct jit_map map = {0};
    jit_map_read(&map, text, size);
    for (size_t i = 0; i < map.count; i++) REQUIRE(map.names[i] && !strchr(map.names[i], '\n'));
    for (uint64_t address = 1; address; address *= 3) {
        const char *name = jit_map_find(&map, address);
        if (name) REQUIRE(strlen(name) <= size);
        if (address > UINT64_MAX / 3) break;
    }
    jit_map_clear(&map);
    free(text);
}

static void read_store(const uint8_t *bytes, size_t size) {
    char *copy = input_text(bytes, size); /* aligned, as malloc's blocks are */
    struct symbol_store store;
    struct result_pool *pool = result_pool_new();
    for (int times = 0; times < 2; times++) { /* the bytes are to open again */
        if (!symbol_store_open(&store, copy, size)) {
            REQUIRE(times == 0);
            break;
        }
        size_t total = 0;
        for (size_t i = 0; i < store.entry_count; i++) {
            const struct store_entry *entry = &store.entries[i];
            REQUIRE(symbol_store_find(&store, entry->space, entry->key));
            const struct symbol *frames = symbol_store_frames(&store, entry, pool);
            for (uint32_t k = 0; k < entry->frame_count; k++)
                total += strlen(frames[k].function) + (frames[k].file ? strlen(frames[k].file) : 0);
        }
        symbol_store_next(&store, 0, total);
    }
    result_pool_free(pool);
    free(copy);
}

static void demangle(const uint8_t *bytes, size_t size) {
    char *text = input_text(bytes, size), *rest = text;
    struct result_pool *pool = result_pool_new();
    for (char *line; (line = strsep(&rest, "\n"));)
        if (demangle_is_mangled(line)) REQUIRE(demangle_name(pool, line, NULL));
    result_pool_free(pool);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size == 0) return 0;
    switch (bytes[0]) {
    case 'm':
        read_map(bytes + 1, size - 1);
        break;
    case 's':
        read_store(bytes + 1, size - 1);
        break;
    case 'd':
        demangle(bytes + 1, size - 1);
        break;
    }
    return 0;
}
