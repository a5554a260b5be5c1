/* Blocks that are allocated in an ignored part of the program and freed outside it, and blocks of an own heap that are
 * resized after they were given a type and a count. Prints what the calls returned. */
#include <malloscope.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 50 };

static void *blocks[BLOCKS];
static char arena[BLOCKS * 64];

__attribute__((noinline)) static void *grow(void *block, size_t size) {
    void *volatile larger = realloc(block, size);
    return larger;
}

static void allocate_ignored(void) {
    mscope_ignore_begin();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] =
            i % 5 ? malloc(100) : aligned_alloc(4096, 4096); /* these begin a page and carry no mark */
        memset(blocks[i], 1, 100);
    }
    for (int i = 0; i < BLOCKS / 2; i++) blocks[i] = grow(blocks[i], 300);
    mscope_ignore_end();
}

int main(void) {
    struct mscope_heap_options exact = {sizeof exact, 1, NULL, NULL};
    mscope_heap heap = mscope_heap_register("pool", &exact);
    allocate_ignored();
    for (int i = 0; i < BLOCKS; i += 3) blocks[i] = grow(blocks[i], 500); /* outside: these are recorded */
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);

    int known = 0, unknown = 0;
    mscope_ignore_begin();
    for (int i = 0; i < BLOCKS; i++) (void)mscope_heap_alloc(heap, arena + i * 64, 64);
    mscope_ignore_end();
    for (int i = 0; i < BLOCKS; i++) known += mscope_heap_free(heap, arena + i * 64) == MSCOPE_OK;
    unknown += mscope_heap_free(heap, arena) == MSCOPE_UNKNOWN; /* once more */

    (void)mscope_heap_alloc_many(heap, arena, 64, 7);
    (void)mscope_heap_type(heap, arena, "struct seven");
    (void)mscope_heap_resize(heap, arena, arena + 128, 96);
    (void)mscope_heap_resize(heap, arena + 128, arena + 128, 32); /* in place */
    printf("{\"known\": %d, \"unknown\": %d}\n", known, unknown);
    return 0;
}
