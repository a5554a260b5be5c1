/* Memory of several heaps and types, under scopes: all of it stays until the end. */
#include <malloscope.h>

#include <stdio.h>
#include <stdlib.h>

#define KIB 1024

static char arena[256 * KIB];
static size_t used;

static void *arena_get(mscope_heap heap, size_t size, const char *type) {
    void *block = arena + used;
    used += size;
    mscope_heap_alloc(heap, block, size);
    if (type) mscope_heap_type(heap, block, type);
    return block;
}

__attribute__((noinline)) static void load_level(mscope_heap textures) {
    MSCOPE_SCOPE("load level");
    for (int i = 0; i < 4; i++) arena_get(textures, 8 * KIB, "Texture");
    for (int i = 0; i < 8; i++) arena_get(textures, 2 * KIB, "Mipmap");
}

__attribute__((noinline)) static void connect_peers(mscope_heap buffers) {
    for (int i = 0; i < 16; i++) arena_get(buffers, 1500, NULL);
}

__attribute__((noinline)) static void make_nodes(void **kept) {
    for (int i = 0; i < 10; i++) {
        kept[i] = malloc(1000);
        if (i < 4) MSCOPE_TYPE(kept[i], "Node");
    }
}

int main(void) {
    void *kept[10];
    setvbuf(stdout, NULL, _IONBF, 0);
    load_level(mscope_heap_register("textures", NULL));
    connect_peers(mscope_heap_register("net/buffers", NULL));
    make_nodes(kept);
    mscope_heap_register("empty", NULL);
    printf("%p\n", kept[0]);
    return 0;
}
