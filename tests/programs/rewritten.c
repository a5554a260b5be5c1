/* rewritten [LIBRARY]: allocates three calls deep, itself or in a library made of the same file (-DLIBRARY). For tools
 * that rewrite programs. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept[1000];

__attribute__((noinline)) void *leaf(int number) {
    void *block = malloc(100 + (size_t)number);
    return block;
}

__attribute__((noinline)) int middle(int count) {
    for (int i = 0; i < count; i++) kept[i % 1000] = leaf(i);
    return count;
}

__attribute__((noinline)) int outer(int count) {
    int sum = 0;
    for (int i = 0; i < 10; i++) sum += middle(count);
    return sum;
}

#ifndef LIBRARY
int main(int argc, char **argv) {
    int (*call)(int) = outer;
    if (argc > 1) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (!library || !(*(void **)&call = dlsym(library, "outer"))) return 1;
    }
    printf("%d\n", call(100));
    return 0;
}
#endif
