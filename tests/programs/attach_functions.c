/* Every allocation function in each of its outcomes. With "old" it frees blocks from before the attach too.
 */
#include "attach_target.h"

#include <malloc.h>
#include <stdbool.h>

static void *logged(void *block, size_t size) {
    keep(block);
    note('a', 0, block, size);
    return block;
}

static void logged_free(void *block) {
    note('f', 0, block, 0);
    free(block);
}

static void *logged_realloc(void *old, size_t size) {
    uint64_t before = (uint64_t)old;
    void *block = realloc(old, size);
    keep(block);
    note('r', before, block, size);
    return block;
}

static void plain(void) {
    void *a = logged(malloc(1001), 1001), *b = logged(malloc(0), 0), *c = logged(calloc(7, 143), 7 * 143);
    logged_free(b);
    logged_free(a);
    logged_free(c);
    free(NULL);
}

static void failing(void) {
    volatile size_t huge = PTRDIFF_MAX - 4096, half = SIZE_MAX / 2;
    void *none = malloc(huge);
    keep(none);
    none = calloc(half, 3);
    keep(none);
    none = calloc(huge / 2, 2);
    keep(none);
    void *sixth = (void *)6;
    if (posix_memalign(&sixth, 3, 100) == 0 || posix_memalign(&sixth, 64, huge) == 0) abort();
}

/* Grows in place, moves, fails, shrinks, becomes nothing; and the forms that are another function in truth.
 */
static void resizing(void) {
    void *block = logged(malloc(2000), 2000);
    block = logged_realloc(block, 2004); /* glibc rounds up: it stays */
    void *wall = logged(malloc(3000), 3000);
    block = logged_realloc(block, 70000);
    volatile size_t huge = PTRDIFF_MAX - 4096, half = SIZE_MAX / 2;
    void *none = realloc(block, huge);
    if (none) abort();
    block = logged_realloc(block, 500);
    void *fresh = realloc(NULL, 1234);
    logged(fresh, 1234);
    void *array = reallocarray(NULL, 11, 13);
    logged(array, 11 * 13);
    uint64_t before = (uint64_t)array;
    array = reallocarray(array, 17, 1000);
    note('r', before, array, 17 * 1000);
    none = reallocarray(array, half, 3);
    if (none) abort();
    logged_free(array);
    note('f', 0, fresh, 0);
    none = realloc(fresh, 0);
    if (none) abort();
    logged_free(block);
    logged_free(wall);
    /* Large blocks are mapped, and moved by the kernel. */
    block = logged(malloc(300000), 300000);
    block = logged_realloc(block, 3000000);
    block = logged_realloc(block, 100);
    logged_free(block);
}

static void aligned(void) {
    void *a = NULL, *b = NULL;
    if (posix_memalign(&a, 8, 777) != 0 || posix_memalign(&b, 4096, 778) != 0) abort();
    note('a', 0, a, 777); /* served by malloc inside */
    note('a', 0, b, 778);
    void *c = logged(aligned_alloc(64, 6400), 6400), *d = logged(memalign(256, 779), 779);
    void *e = logged(memalign(8, 780), 780), *f = logged(valloc(781), 781), *g = logged(pvalloc(782), 782);
    void *all[] = {a, b, c, d, e, f, g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) logged_free(all[i]);
}

int main(int argc, char **argv) {
    bool old = argc > 1 && strcmp(argv[1], "old") == 0;
    void *earlier[10], *one = malloc(99);
    for (int i = 0; i < 10; i++) earlier[i] = malloc(50);
    wait_until_attached();
    plain();
    failing();
    resizing();
    aligned();
    if (old) {
        for (int i = 0; i < 10; i++) free(earlier[i]);
        one = realloc(one, 4321);
        note('a', 0, one, 4321); /* the old block was not known */
        logged_free(one);
    }
    logged(malloc(31337), 31337); /* stays */
    wait_until_detached();
}
