/* deep_stacks COUNT DEPTH: allocates and frees a block of 1 MiB from each of COUNT distinct stacks of about DEPTH
 * frames, and prints what it allocated and its resident KiB. */
#include "ledger.h"

static long objects;
static size_t bytes;

static long resident(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
    fclose(status);
    return kib;
}

__attribute__((noinline)) static void allocate(void) {
    void *block = malloc(1 << 20); /* @site deep */
    ESCAPE(block);
    free(block);
    objects++;
    bytes += 1 << 20;
}

static void descend(unsigned number, int depth);

/* What follows a call keeps it from being the last thing a function does, which would leave no frame. */
#define STEP(name)                                                                                           \
    __attribute__((noinline)) static void name(unsigned number, int depth) {                                 \
        descend(number, depth);                                                                              \
        __asm__ volatile("");                                                                                \
    }
STEP(left)
STEP(right)

/* The bits of the number choose the way: the frames in the middle differ, the inner and outer ones do not. */
__attribute__((noinline)) static void descend(unsigned number, int depth) {
    if (depth <= 0)
        allocate();
    else if (number & 1)
        right(number >> 1, depth - 2);
    else
        left(number >> 1, depth - 2);
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    REQUIRE(argc == 3);
    unsigned count = (unsigned)atoi(argv[1]);
    for (unsigned i = 0; i < count; i++) descend(i, atoi(argv[2]) - 4);
    printf("{\"resident_kib\": %ld, \"bytes\": %zu, \"objects\": %ld}\n", resident(), bytes, objects);
    return 0;
}
