/* Every function of the malloc family in every outcome, each from a line of its own. */
#include "ledger.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

LEDGER_SITE(malloc_small)
LEDGER_SITE(malloc_zero)
LEDGER_SITE(malloc_large)
LEDGER_SITE(malloc_huge)
LEDGER_SITE(malloc_too_big)
LEDGER_SITE(malloc_freed)
LEDGER_SITE(calloc_plain)
LEDGER_SITE(calloc_large)
LEDGER_SITE(calloc_zero)
LEDGER_SITE(calloc_overflow)
LEDGER_SITE(before_shrink)
LEDGER_SITE(realloc_shrink)
LEDGER_SITE(before_move)
LEDGER_SITE(realloc_move)
LEDGER_SITE(before_remap)
LEDGER_SITE(realloc_remap)
LEDGER_SITE(before_failure)
LEDGER_SITE(realloc_failure)
LEDGER_SITE(realloc_null)
LEDGER_SITE(before_zero)
LEDGER_SITE(realloc_zero)
LEDGER_SITE(realloc_loop)
LEDGER_SITE(before_reallocarray)
LEDGER_SITE(reallocarray_plain)
LEDGER_SITE(reallocarray_null)
LEDGER_SITE(reallocarray_overflow)
LEDGER_SITE(posix_memalign_plain)
LEDGER_SITE(posix_memalign_invalid)
LEDGER_SITE(aligned_alloc_plain)
LEDGER_SITE(memalign_plain)
LEDGER_SITE(valloc_plain)
LEDGER_SITE(pvalloc_plain)
LEDGER_SITE(before_mixed)
LEDGER_SITE(mixed_realloc)

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void check_block(void *pointer, size_t size, size_t alignment) {
    REQUIRE(pointer);
    REQUIRE((uintptr_t)pointer % alignment == 0);
    size_t usable = malloc_usable_size(pointer);
    REQUIRE(usable >= size);
    memset(pointer, 0x5a, usable);
    ESCAPE(pointer);
}

static bool all_zero(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i]) return false;
    return true;
}

static void plain_malloc(void) {
    static void *small[100];
    for (size_t i = 0; i < COUNT(small); i++) {
        small[i] = malloc(24 + i); /* @site malloc_small */
        check_block(small[i], 24 + i, 16);
        ledger_allocated(&malloc_small, 24 + i);
    }
    for (size_t i = 0; i < 60; i++) {
        free(small[i]);
        ledger_freed(&malloc_small, 24 + i);
    }

    static void *zero[7];
    for (size_t i = 0; i < COUNT(zero); i++) {
        zero[i] = malloc(0); /* @site malloc_zero */
        REQUIRE(zero[i]);
        for (size_t j = 0; j < i; j++) REQUIRE(zero[i] != zero[j]);
        ledger_allocated(&malloc_zero, 0);
    }
    for (size_t i = 0; i < 3; i++) {
        free(zero[i]);
        ledger_freed(&malloc_zero, 0);
    }

    static void *large[3];
    for (size_t i = 0; i < COUNT(large); i++) {
        large[i] = malloc((i + 1) << 20); /* @site malloc_large */
        check_block(large[i], (i + 1) << 20, 16);
        ledger_allocated(&malloc_large, (i + 1) << 20);
    }
    free(large[1]);
    ledger_freed(&malloc_large, 2 << 20);

    for (int i = 0; i < 1000; i++) {
        void *block = malloc(48); /* @site malloc_freed */
        ESCAPE(block);
        ledger_allocated(&malloc_freed, 48);
        free(block);
        ledger_freed(&malloc_freed, 48);
    }
    for (int i = 0; i < 10; i++) free(NULL);
}

static void huge_sizes(void) {
    size_t size = (size_t)8 << 30;
    unsigned char *block = malloc(size); /* @site malloc_huge */
    if (block) {
        block[0] = block[size / 2] = block[size - 1] = 1;
        ledger_allocated(&malloc_huge, size);
    }
    ledger_note("huge", block != NULL);
    ESCAPE(block);

    volatile size_t sizes[] = {
        SIZE_MAX, SIZE_MAX - 4096, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, (size_t)1 << 62};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        errno = 0;
        void *failed = malloc(sizes[i]); /* @site malloc_too_big */
        REQUIRE(!failed && errno == ENOMEM);
    }
}

static void plain_calloc(void) {
    for (int i = 0; i < 10; i++) {
        unsigned char *block = calloc(16, 25); /* @site calloc_plain */
        REQUIRE(block && all_zero(block, 400));
        check_block(block, 400, 16);
        ledger_allocated(&calloc_plain, 400);
        if (i % 2) {
            free(block);
            ledger_freed(&calloc_plain, 400);
        }
    }
    for (int i = 0; i < 2; i++) {
        unsigned char *block = calloc(1000, 1024); /* @site calloc_large */
        REQUIRE(block && all_zero(block, 1024000));
        check_block(block, 1024000, 16);
        ledger_allocated(&calloc_large, 1024000);
        if (i == 0) {
            free(block);
            ledger_freed(&calloc_large, 1024000);
        }
    }
    void *zero = calloc(0, 8); /* @site calloc_zero */
    REQUIRE(zero);
    ESCAPE(zero);
    ledger_allocated(&calloc_zero, 0);

    volatile size_t much = SIZE_MAX / 2;
    errno = 0;
    void *overflow = calloc(much, 3); /* @site calloc_overflow */
    REQUIRE(!overflow && errno == ENOMEM);
}

static void reallocations(void) {
    long same = 0, moved = 0;

    /* Shrinking by a little stays in place. */
    for (int i = 0; i < 5; i++) {
        char *old = malloc(1000); /* @site before_shrink */
        memset(old, 'a' + i, 1000);
        ledger_allocated(&before_shrink, 1000);
        uintptr_t address = (uintptr_t)old;
        char *new = realloc(old, 900); /* @site realloc_shrink */
        REQUIRE(new &&new[0] == 'a' + i &&new[899] == 'a' + i);
        ledger_freed(&before_shrink, 1000);
        ledger_allocated(&realloc_shrink, 900);
        *((uintptr_t) new == address ? &same : &moved) += 1;
    }

    /* Growing a block that has a neighbour moves it. */
    for (int i = 0; i < 5; i++) {
        char *old = malloc(200);      /* @site before_move */
        void *neighbour = malloc(48); /* leaks on purpose */
        ESCAPE(neighbour);
        memset(old, 'f' + i, 200);
        ledger_allocated(&before_move, 200);
        uintptr_t address = (uintptr_t)old;
        char *new = realloc(old, 20000); /* @site realloc_move */
        REQUIRE(new &&new[0] == 'f' + i &&new[199] == 'f' + i);
        check_block(new, 20000, 16);
        ledger_freed(&before_move, 200);
        ledger_allocated(&realloc_move, 20000);
        *((uintptr_t) new == address ? &same : &moved) += 1;
        if (i < 2) {
            free(new);
            ledger_freed(&realloc_move, 20000);
        }
    }
    ledger_note("realloc_same", same);
    ledger_note("realloc_moved", moved);

    /* Blocks that have pages of their own, grown by the kernel. */
    char *pages = malloc(1 << 20); /* @site before_remap */
    memset(pages, 'p', 1 << 20);
    ledger_allocated(&before_remap, 1 << 20);
    char *more = realloc(pages, 16 << 20); /* @site realloc_remap */
    REQUIRE(more && more[0] == 'p' && more[(1 << 20) - 1] == 'p');
    check_block(more, 16 << 20, 16);
    ledger_freed(&before_remap, 1 << 20);
    ledger_allocated(&realloc_remap, 16 << 20);

    /* A failed realloc leaves the old block alive. */
    volatile size_t much = PTRDIFF_MAX;
    char *kept = malloc(333); /* @site before_failure */
    memset(kept, 'k', 333);
    ledger_allocated(&before_failure, 333);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        void *failed = realloc(kept, much); /* @site realloc_failure */
        REQUIRE(!failed && errno == ENOMEM);
        REQUIRE(kept[0] == 'k' && kept[332] == 'k');
    }
    ESCAPE(kept);

    char *fresh = realloc(NULL, 77); /* @site realloc_null */
    check_block(fresh, 77, 16);
    ledger_allocated(&realloc_null, 77);

    /* glibc: size zero frees the block. */
    for (int i = 0; i < 4; i++) {
        void *old = malloc(120); /* @site before_zero */
        ESCAPE(old);
        ledger_allocated(&before_zero, 120);
        volatile size_t nothing = 0;
        void *gone = realloc(old, nothing); /* @site realloc_zero */
        REQUIRE(!gone);
        ledger_freed(&before_zero, 120);
    }

    /* One line that grows its own block: the old one goes when the new one comes. */
    char *growing = NULL;
    for (size_t size = 100; size <= 6400; size *= 2) {
        growing = realloc(growing, size); /* @site realloc_loop */
        REQUIRE(growing);
        if (size > 100) {
            REQUIRE(growing[0] == 'g' && growing[size / 2 - 1] == 'g');
            ledger_freed(&realloc_loop, size / 2);
        }
        ledger_allocated(&realloc_loop, size);
        memset(growing, 'g', size);
    }

    char *array = malloc(50); /* @site before_reallocarray */
    memset(array, 'r', 50);
    ledger_allocated(&before_reallocarray, 50);
    array = reallocarray(array, 20, 30); /* @site reallocarray_plain */
    REQUIRE(array && array[0] == 'r' && array[49] == 'r');
    ledger_freed(&before_reallocarray, 50);
    ledger_allocated(&reallocarray_plain, 600);
    check_block(array, 600, 16);
    void *first = reallocarray(NULL, 10, 33); /* @site reallocarray_null */
    check_block(first, 330, 16);
    ledger_allocated(&reallocarray_null, 330);
    errno = 0;
    void *overflow = reallocarray(array, much, 4); /* @site reallocarray_overflow */
    REQUIRE(!overflow && errno == ENOMEM);
    free(array);
    ledger_freed(&reallocarray_plain, 600);
}

static void aligned(void) {
    for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
        void *block = NULL;
        int r = posix_memalign(&block, alignment, 1234); /* @site posix_memalign_plain */
        REQUIRE(r == 0);
        check_block(block, 1234, alignment);
        ledger_allocated(&posix_memalign_plain, 1234);
        if (alignment >= 256) {
            free(block);
            ledger_freed(&posix_memalign_plain, 1234);
        }
    }
    void *untouched = &aligned;
    int r = posix_memalign(&untouched, 24, 100); /* @site posix_memalign_invalid */
    REQUIRE(r == EINVAL && untouched == &aligned);

    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        void *block = aligned_alloc(alignment, 640); /* @site aligned_alloc_plain */
        check_block(block, 640, alignment);
        ledger_allocated(&aligned_alloc_plain, 640);
        free(block);
        ledger_freed(&aligned_alloc_plain, 640);
        block = memalign(alignment, 100); /* @site memalign_plain */
        check_block(block, 100, alignment);
        ledger_allocated(&memalign_plain, 100);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *block = valloc(5000); /* @site valloc_plain */
    check_block(block, 5000, page);
    ledger_allocated(&valloc_plain, 5000);
    block = pvalloc(2 * page); /* @site pvalloc_plain */
    check_block(block, 2 * page, page);
    ledger_allocated(&pvalloc_plain, 2 * page);
    free(block);
    ledger_freed(&pvalloc_plain, 2 * page);

    /* An aligned block that is reallocated keeps its contents, not its alignment. */
    char *old = memalign(4096, 300); /* @site before_mixed */
    memset(old, 'm', 300);
    ledger_allocated(&before_mixed, 300);
    char *new = realloc(old, 7000); /* @site mixed_realloc */
    REQUIRE(new &&new[0] == 'm' && new[299] == 'm');
    ledger_freed(&before_mixed, 300);
    ledger_allocated(&mixed_realloc, 7000);
    check_block(new, 7000, 16);
}

static void inside_libc(void) {
    char *copies[20];
    for (int i = 0; i < 20; i++) {
        copies[i] = strdup("nineteen characters");
        REQUIRE(copies[i] && strcmp(copies[i], "nineteen characters") == 0);
    }
    for (int i = 0; i < 5; i++) free(copies[i]);
}

static void errno_is_kept(void) {
    void *block = malloc(100000);
    ESCAPE(block);
    errno = 1234;
    free(block);
    REQUIRE(errno == 1234);
    free(NULL);
    REQUIRE(errno == 1234);
}

int main(void) {
    plain_malloc();
    huge_sizes();
    plain_calloc();
    reallocations();
    aligned();
    inside_libc();
    errno_is_kept();
    ledger_print();
    return 0;
}
