/* What the views for people say: `views KEEP` holds 100 blocks at its peak, ends with KEEP blocks that were
 * allocated at the bottom of a recursion, and frees the rest. */
#include <stdlib.h>

#define LARGE 100
#define SMALL 200

static char *volatile blocks[LARGE];
static char *volatile kept;

/* A name that counts as a wrapper of malloc. */
__attribute__((noinline)) void *xmalloc(size_t size);
void *xmalloc(size_t size) {
    return malloc(size);
}

__attribute__((noinline)) static int descend(int depth, int count) {
    if (depth > 0) return descend(depth - 1, count) + 1;   /* @site descend */
    for (int i = 0; i < count; i++) kept = xmalloc(SMALL); /* @site bottom */
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 0; i < LARGE; i++) blocks[i] = malloc(100000); /* @site large */
    for (int i = 0; i < LARGE; i++) free(blocks[i]);
    return descend(40, argc > 1 ? atoi(argv[1]) : 0) == 40 ? 0 : 1;
}
