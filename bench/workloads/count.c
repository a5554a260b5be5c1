/* For counting instructions: MALLOCS allocations of SIZE bytes, then frees of the first FREES of them. Two
 * runs that differ in one figure only differ by the cost of exactly those calls.
 *
 *     count MALLOCS FREES SIZE */
#include "clock.h"

int main(int argc, char **argv) {
    unsigned long mallocs = argument(argc, argv, 1, 0);
    unsigned long frees = argument(argc, argv, 2, 0);
    size_t size = argument(argc, argv, 3, 64);
    static void *block[1 << 20];
    if (mallocs > sizeof block / sizeof *block || frees > mallocs) return 2;
    for (unsigned long i = 0; i < mallocs; i++) block[i] = malloc(size);
    for (unsigned long i = 0; i < frees; i++) free(block[i]);
    return 0;
}
