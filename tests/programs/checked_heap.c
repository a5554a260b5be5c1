/* checked_heap [overrun]: to be run with glibc's libc_malloc_debug.so and MALLOC_CHECK_=3. That allocator knows
 * sizes to the byte, and ends the program when a block is freed behind whose end something was written. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    (void)argv;
    for (size_t size = 1; size < 10000; size += 7) {
        char *block = malloc(size);
        if (malloc_usable_size(block) != size)
            printf("%zu bytes became %zu\n", size, malloc_usable_size(block));
        memset(block, 1, size);
        block = realloc(block, 2 * size);
        if (argc > 1) ((volatile char *)block)[2 * size] ^= 1;
        free(block);
    }
    puts("done");
}
