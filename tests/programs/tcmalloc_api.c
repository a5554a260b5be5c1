/* A program that knows it runs on tcmalloc: blocks from malloc go through tcmalloc's own functions and back.
 */
#include "ledger.h"

#include <gperftools/malloc_extension_c.h>
#include <gperftools/tcmalloc.h>
#include <stdint.h>
#include <string.h>

static void fill_and_check(char *block, size_t size) {
    memset(block, 't', size);
    for (size_t i = 0; i < size; i++) REQUIRE(block[i] == 't');
}

int main(void) {
    for (int round = 0; round < 2000; round++) {
        size_t size = 1 + (size_t)round * 37 % 9000;

        char *block = malloc(size);
        REQUIRE(tc_malloc_size(block) >= size);
        REQUIRE(MallocExtension_GetAllocatedSize(block) >= size);
        fill_and_check(block, size);
        tc_free(block);

        block = malloc(size);
        fill_and_check(block, size);
        block = tc_realloc(block, size * 2);
        REQUIRE(block && block[0] == 't' && block[size - 1] == 't');
        free(block);

        block = tc_malloc(size);
        fill_and_check(block, size);
        block = realloc(block, size + 500);
        REQUIRE(block[0] == 't' && block[size - 1] == 't');
        free(block);

        block = calloc(1, size);
        tc_free_sized(block, size);
        block = memalign(512, size);
        REQUIRE((uintptr_t)block % 512 == 0);
        fill_and_check(block, size);
        tc_cfree(block);
    }
    MallocExtension_ReleaseFreeMemory();
    printf("tcmalloc %.1s\n", tc_version(NULL, NULL, NULL));
    return 0;
}
