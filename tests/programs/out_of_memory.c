/* What errno says after allocations that fail, and after those that succeed when memory is nearly used up. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void tell(const char *function, void *block) {
    printf("%s: %s, errno %d\n", function, block ? "a block" : "none", errno);
    free(block);
    errno = 0;
}

static void *by_posix_memalign(size_t alignment, size_t size) {
    void *block = NULL;
    int error = posix_memalign(&block, alignment, size);
    printf("posix_memalign returns %d\n", error);
    return error ? NULL : block;
}

int main(void) {
    const volatile size_t too_much = PTRDIFF_MAX, beyond_limit = (size_t)1 << 40;
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)1 << 30, (rlim_t)1 << 30});
    const size_t sizes[] = {too_much, beyond_limit, 100};
    for (int i = 0; i < 3; i++) {
        errno = 0;
        tell("malloc", malloc(sizes[i]));
        tell("calloc", calloc(1, sizes[i]));
        tell("realloc", realloc(NULL, sizes[i]));
        tell("posix_memalign", by_posix_memalign(128, sizes[i]));
        tell("posix_memalign, wrong", by_posix_memalign(3, sizes[i]));
        tell("aligned_alloc", aligned_alloc(128, sizes[i]));
        tell("memalign", memalign(128, sizes[i]));
        tell("valloc", valloc(sizes[i]));
        tell("pvalloc", pvalloc(sizes[i]));
    }
}
