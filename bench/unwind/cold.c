/* cold DEPTH MIB: what one malloc costs in a function that is so many calls deep after the program has worked on so
 * much other memory, which takes the processor's caches from what the recorder needs. Prints the least and the
 * median, in ns, of single calls; the clock's own cost is in it. */
#include <execinfo.h>
#include <stdio.h>

#include "descend.h"

#define ROUNDS 301
#define SIZE   200

static char *other;
static size_t other_size;

static void at_depth(int depth) {
    static double taken[ROUNDS];
    (void)depth;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < other_size; i += 64) other[i]++;
        double start = now();
        void *block = malloc(SIZE);
        __asm__ volatile("" ::"r"(block) : "memory");
        taken[round] = now() - start;
        free(block);
    }
    qsort(taken, ROUNDS, sizeof(double), ascending);
    printf("%.1f %.1f\n", taken[0], taken[ROUNDS / 2]);
}

int main(int count, char **arguments) {
    void *frames[64];
    int depth = count > 1 ? atoi(arguments[1]) : 30;
    other_size = (size_t)(count > 2 ? atoi(arguments[2]) : 4) << 20;
    other = calloc(1, other_size);
    if (!other) return 1;
    descend(depth, depth - backtrace(frames, 64) - 1);
    return 0;
}
