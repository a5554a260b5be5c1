/* attach_known GO DONE: waits for the file GO, allocates and frees known amounts, makes DONE, and waits to be
 * killed. First it prints, as whole numbers, the bytes that it will allocate from then on and those that it
 * will keep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 100

static void *volatile kept[4 * ROUNDS];

static void use(void *block) {
    if (!block) abort();
    *(volatile char *)block = 1;
}

__attribute__((noinline)) static void *by_malloc(size_t size) {
    void *block = malloc(size); /* @site malloc */
    use(block);
    return block;
}

__attribute__((noinline)) static void *by_calloc(size_t size) {
    void *block = calloc(1, size); /* @site calloc */
    use(block);
    return block;
}

__attribute__((noinline)) static void *by_realloc(void *old, size_t size) {
    void *block = realloc(old, size); /* @site realloc */
    use(block);
    return block;
}

__attribute__((noinline)) static void *by_memalign(size_t size) {
    void *block = NULL;
    if (posix_memalign(&block, 64, size) != 0) abort(); /* @site memalign */
    use(block);
    return block;
}

/* Adds up what is allocated and what stays; `really` allocates. */
static void work(int really, unsigned long *allocated, unsigned long *live) {
    *allocated = *live = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned long size = 100 + i;
        if (really) {
            kept[i] = by_malloc(size);
            free(by_malloc(2 * size));
            kept[ROUNDS + i] = by_calloc(3 * size);
            void *grown = by_realloc(by_malloc(size), 4000 + size);
            kept[2 * ROUNDS + i] = by_realloc(grown, 10);
            kept[3 * ROUNDS + i] = by_memalign(size);
            if (i % 2) {
                free(kept[i]);
                kept[i] = NULL;
            }
        }
        *allocated += size + 2 * size + 3 * size + size + (4000 + size) + 10 + size;
        *live += (i % 2 ? 0 : size) + 3 * size + 10 + size;
    }
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    unsigned long allocated, live;
    work(0, &allocated, &live);
    char text[64];
    int length = snprintf(text, sizeof text, "%lu %lu\n", allocated, live);
    if (write(STDOUT_FILENO, text, (size_t)length) != length) return 1;
    while (access(arguments[1], F_OK) != 0) usleep(10000);
    work(1, &allocated, &live);
    /* Not by stdio, which would allocate. */
    if (symlink("done", arguments[2]) != 0) return 1;
    for (;;) pause();
}
