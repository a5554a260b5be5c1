/* allocation DEPTH: what one malloc and one free cost in a function that is so many calls deep, in ns: the
 * least and the median of short rounds' means. Some blocks are alive at any time, so that it is not the same
 * one again and again. */
#include <execinfo.h>
#include <stdio.h>

#include "descend.h"

#define ROUNDS 4001 /* short ones, so that most are not interrupted */
#define PAIRS  100
#define LIVE   64
#define SIZE   200

static void at_depth(int depth) {
    static double mean[ROUNDS];
    static void *block[LIVE];
    (void)depth;
    unsigned next = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < PAIRS; i++) {
            free(block[next]);
            block[next] = malloc(SIZE);
            next = (next + 1) % LIVE;
        }
        mean[round] = (now() - start) / PAIRS;
    }
    qsort(mean, ROUNDS, sizeof(double), ascending);
    printf("%.1f %.1f\n", mean[0], mean[ROUNDS / 2]);
}

int main(int count, char **arguments) {
    void *frames[64];
    int depth = count > 1 ? atoi(arguments[1]) : 30;
    descend(depth, depth - backtrace(frames, 64) - 1);
    return 0;
}
