/* Allocates once from each of many call stacks: many_stacks LEVELS. Each level calls each of four functions,
 * so ten levels make 4^10 = 1,048,576 stacks. Every other block is freed. */
#include <stdio.h>
#include <stdlib.h>

static unsigned long count;
static void *volatile kept;

static void descend(int levels);

__attribute__((noinline)) static void allocate(void) {
    char *block = malloc(16 + count % 2048); /* @site stack */
    if (count++ % 2)
        free(block);
    else
        kept = block;
}

/* What follows a call keeps it from being the last thing a function does, which would leave no frame. */
#define STEP(name)                                                                                           \
    __attribute__((noinline)) static void name(int levels) {                                                 \
        descend(levels);                                                                                     \
        __asm__ volatile("");                                                                                \
    }
STEP(north)
STEP(east)
STEP(south)
STEP(west)

__attribute__((noinline)) static void descend(int levels) {
    static void (*const steps[])(int) = {north, east, south, west};
    if (levels == 0)
        allocate();
    else
        for (int i = 0; i < 4; i++) steps[i](levels - 1);
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    descend(argc > 1 ? atoi(argv[1]) : 10);
    printf("{\"stacks\": %lu}\n", count);
    return 0;
}
