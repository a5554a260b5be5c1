/* A library for library_places: what it allocates stays. NAME, of one length for all, is its function's name:
 * the libraries have all functions at the same addresses. */
#include <stdlib.h>
#include <string.h>

void *library_keep(size_t size);

static __attribute__((noinline)) void *NAME(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

void *library_keep(size_t size) {
    void *block = NAME(size);
    __asm__ volatile("" : "+r"(block)); /* no tail call */
    return block;
}
