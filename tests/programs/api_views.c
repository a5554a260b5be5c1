/* Names what it allocates, and keeps all of it: every figure that views show of it is known.
 *
 *     heap      type      scope        bytes   where
 *     malloc    -         -            10 * 100
 *     malloc    Account   load         20 * 64
 *     malloc    -         parse        30 * 32, within load
 *     textures  Pixel     load         5 * 4096
 *     textures  -         request; 1   3 * 1000
 */
#include <malloscope.h>
#include <pthread.h>
#include <stdlib.h>

static char memory[1 << 16];
static size_t used;
void *volatile kept;

__attribute__((noinline)) static void *texture(mscope_heap heap, size_t size) {
    void *block = memory + used;
    used += size;
    mscope_heap_alloc(heap, block, size); /* @site texture */
    return block;
}

__attribute__((noinline)) static void plain(void) {
    for (int i = 0; i < 10; i++) kept = malloc(100); /* @site plain */
}

__attribute__((noinline)) static void parse(void) {
    MSCOPE_SCOPE("parse");
    for (int i = 0; i < 30; i++) kept = malloc(32); /* @site parse */
}

__attribute__((noinline)) static void load(mscope_heap heap) {
    MSCOPE_SCOPE("load");
    for (int i = 0; i < 20; i++) {
        kept = malloc(64); /* @site account */
        mscope_type_named(kept, "Account");
    }
    for (int i = 0; i < 5; i++) mscope_heap_type(heap, texture(heap, 4096), "Pixel");
    parse();
}

__attribute__((noinline)) static void *serve(void *argument) {
    pthread_setname_np(pthread_self(), "server");
    mscope_heap heap = *(mscope_heap *)argument;
    mscope_scope_begin("request; 1");
    for (int i = 0; i < 3; i++) texture(heap, 1000);
    mscope_scope_end();
    return NULL;
}

int main(void) {
    mscope_heap heap = mscope_heap_register("textures", NULL);
    plain();
    load(heap);
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, &heap)) return 1;
    pthread_join(thread, NULL);
    return 0;
}
