/* A library for library_storm. It is compiled to assembly a few times, with frames of ROOM bytes; a thousand
 * libraries are made of that by filling in @NUMBER@ and @PADDING@: each has functions of its own names, at
 * places of their own.
 *
 * library_call(DEPTH) allocates DEPTH + 1 times, each time from one call deeper, and returns the library's
 * number. It also allocates when it is opened and when it is closed. The size of every allocation is 1000
 * more than the number: it tells which library it was made in. */
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

static long allocate(void) __asm__("allocate_@NUMBER@");
static long descend(long depth) __asm__("descend_@NUMBER@");
static void begin(void) __asm__("begin_@NUMBER@");
static void end(void) __asm__("end_@NUMBER@");
static void *volatile escaped;

static __attribute__((noinline)) long allocate(void) {
    void *block = malloc(1000 + (size_t)library_number);
    escaped = block;
    free(block);
    return block != NULL;
}

static __attribute__((noinline)) long descend(long depth) {
    volatile char room[ROOM];
    room[0] = (char)depth;
    room[ROOM - 1] = 1;
    long count = allocate() + (depth > 0 ? descend(depth - 1) : 0);
    return count + room[0] - depth;
}

static __attribute__((constructor)) void begin(void) {
    allocate();
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static __attribute__((destructor)) void end(void) {
    allocate();
    __asm__ volatile("" ::: "memory");
}

long library_call(long depth) {
    return descend(depth) == depth + 1 ? library_number : -1;
}
