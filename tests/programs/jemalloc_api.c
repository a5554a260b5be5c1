/* A program that knows it runs on jemalloc: blocks from malloc go through jemalloc's own functions and back.
 */
#include "ledger.h"

#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <string.h>

static void fill_and_check(char *block, size_t size) {
    memset(block, 'j', size);
    for (size_t i = 0; i < size; i++) REQUIRE(block[i] == 'j');
}

int main(void) {
    for (int round = 0; round < 2000; round++) {
        size_t size = 1 + (size_t)round * 37 % 9000;

        char *block = malloc(size);
        REQUIRE(sallocx(block, 0) >= size);
        REQUIRE(malloc_usable_size(block) >= size);
        fill_and_check(block, size);
        sdallocx(block, size, 0);

        block = malloc(size);
        fill_and_check(block, size);
        block = rallocx(block, size * 2, 0);
        REQUIRE(block && block[0] == 'j' && block[size - 1] == 'j');
        dallocx(block, 0);

        block = calloc(1, size);
        size_t got = xallocx(block, size + 64, 0, 0);
        REQUIRE(got >= size && got >= malloc_usable_size(block));
        fill_and_check(block, size);
        free(block);

        block = mallocx(size, MALLOCX_ALIGN(128) | MALLOCX_ZERO);
        REQUIRE((uintptr_t)block % 128 == 0 && block[size - 1] == 0);
        fill_and_check(block, size);
        block = realloc(block, size + 500);
        REQUIRE(block[0] == 'j' && block[size - 1] == 'j');
        free(block);

        block = aligned_alloc(256, size);
        fill_and_check(block, size);
        sdallocx(block, size, MALLOCX_ALIGN(256));
    }
    const char *version;
    size_t length = sizeof version;
    REQUIRE(mallctl("version", &version, &length, NULL, 0) == 0);
    printf("jemalloc %.3s\n", version);
    return 0;
}
