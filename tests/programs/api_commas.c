/* Calls with commas that no parenthesis encloses: in compound literals and, in C++, between arguments of templates.
 * Compiled as C and as C++, with and without MSCOPE_LINKED: a function takes them, so a macro of its name must. */
#include <malloscope.h>

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
template <typename Type, int Count> static Type *place() {
    static Type blocks[Count];
    return blocks;
}
#define PLACE place<int, 3>()
static const struct mscope_heap_options *exact() {
    static struct mscope_heap_options options;
    options.size = sizeof options;
    options.rate = 1;
    return &options;
}
#else
static int blocks[3];
#define PLACE ((int *[]){blocks, blocks + 1})[0]
#endif

int main(void) {
    struct mscope_stats stats;
    stats.size = sizeof stats;
#ifdef __cplusplus
    mscope_heap heap = mscope_heap_register("h", exact());
#else
    mscope_heap heap = mscope_heap_register(
        "h", &(struct mscope_heap_options){.size = sizeof(struct mscope_heap_options), .rate = 1});
    (void)mscope_init(&(struct mscope_options){.size = sizeof(struct mscope_options), .rate = 1});
#endif
    (void)mscope_heap_alloc(heap, PLACE, 12);
    (void)mscope_heap_alloc_many(heap, PLACE, 12, 3);
    (void)mscope_heap_resize(heap, PLACE, PLACE, 4);
    (void)mscope_heap_type(heap, PLACE, "int");
    (void)mscope_type_named(PLACE, "int");
    (void)mscope_heap_free(heap, PLACE);
    mscope_result result = mscope_stats(&stats);
    printf("{\"heap\": %u, \"result\": %d}\n", heap, (int)result);
    return 0;
}
