/* Allocations that every export must show at the right function and line. All of it stays until the end, but for
 * what `churn` makes. */
#include <stdio.h>
#include <stdlib.h>

#define KEEP 64
static void *kept[4 * KEEP];
static int kept_count;

__attribute__((noinline)) static void keep(void *block) {
    kept[kept_count++] = block;
}

__attribute__((noinline)) static void many_small(void) {
    for (int i = 0; i < KEEP; i++) keep(malloc(100)); /* @site many_small */
}

__attribute__((noinline)) static void few_large(void) {
    for (int i = 0; i < 3; i++) keep(malloc(1000000)); /* @site few_large */
}

/* Sizes of very different sampling probability in one stack. */
__attribute__((noinline)) static void mixed(void) {
    for (int i = 0; i < KEEP; i++) keep(malloc(i % 16 == 0 ? 200000 : 50)); /* @site mixed */
}

__attribute__((noinline)) static void churn(void) {
    for (int i = 0; i < 500; i++) {
        void *volatile block = malloc(3000); /* @site churn */
        free(block);
    }
}

__attribute__((always_inline)) static inline void *inner(size_t size) {
    return calloc(1, size); /* @site inner */
}

__attribute__((noinline)) static void outer(void) {
    keep(inner(70000)); /* @site outer */
}

int main(void) {
    many_small();
    few_large();
    mixed();
    churn();
    outer();
    printf("%d blocks kept\n", kept_count);
    return 0;
}
