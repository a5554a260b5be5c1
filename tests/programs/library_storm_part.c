/* A library for library_storm. It is compiled to assembly a few times, with frames of ROOM bytes; a thousand
 * libraries are made of that by filling in @NUMBER@ and @PADDING@: each has functions of its own names, at
 * places of their own.
 *
 * library_call(DEPTH) allocates DEPTH + 1 times, each time from one call deeper, and returns the library's
 * number. */
#include <stdlib.h>

extern const long library_number __attribute__((visibility("hidden")));
long library_call(long depth);

__asm__(".text\n"
        ".skip @PADDING@, 0x90\n" /* moves what follows */
        ".section .rodata\n"
        ".p2align 3\n"
        ".hidden library_number\n"
        "library_number: .quad @NUMBER@\n"
        ".text\n");

static long allocate(size_t size) __asm__("allocate_@NUMBER@");
static long descend(long depth) __asm__("descend_@NUMBER@");
static void *volatile escaped;

static __attribute__((noinline)) long allocate(size_t size) {
    void *block = malloc(size);
    escaped = block;
    free(block);
    return block != NULL;
}

static __attribute__((noinline)) long descend(long depth) {
    volatile char room[ROOM];
    room[0] = (char)depth;
    room[ROOM - 1] = 1;
    long count = allocate(100) + (depth > 0 ? descend(depth - 1) : 0);
    return count + room[0] - depth;
}

long library_call(long depth) {
    return descend(depth) == depth + 1 ? library_number : -1;
}
