/* An allocator with names that attach knows, in a library that is loaded late. */
#include <stddef.h>

static char room[1 << 16];
static size_t used;

void *mi_malloc(size_t size);
void mi_free(void *block);

void *mi_malloc(size_t size) {
    void *block = room + used;
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof room ? block : NULL;
}

void mi_free(void *block) {
    if (block == room) used = 0;
}
