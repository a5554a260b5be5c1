/* Growth, of distinct stacks: each step goes down a path of DEPTH calls, allocates and frees there. The last BITS turns
 * of it are drawn at random, so that there are 2^BITS stacks, all equally deep.
 *
 *     paths MILLISECONDS BITS
 *
 * Prints nanoseconds per step, after each path was gone down twice. */
#include "clock.h"

#define DEPTH 24
#define SIZE  64

static __attribute__((noinline)) void turn(unsigned depth, uint64_t path) {
    if (depth == 0) {
        void *block = malloc(SIZE);
        touch(block);
        free(block);
    } else if (path & 1) {
        turn(depth - 1, path >> 1);
    } else {
        turn(depth - 1, path >> 1);
        __asm__ volatile("" ::: "memory"); /* not the same call as above */
    }
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

int main(int argc, char **argv) {
    double milliseconds = (double)argument(argc, argv, 1, 300);
    unsigned long bits = argument(argc, argv, 2, 10);
    if (bits > DEPTH) return 2;
    uint64_t paths = UINT64_C(1) << bits, state = 88172645463325252u;
    static struct meter meter;
    /* From one place, so that they are the same stacks each time: volatile, or the compiler makes two loops of it. The
     * turns near the leaf, which come last, are those that differ. */
    volatile uint64_t warm = 2 * paths;
    for (uint64_t step = 0;; step++) {
        uint64_t path = step < warm ? step : sampler_random_next(&state);
        turn(DEPTH, (path & (paths - 1)) << (DEPTH - bits));
        if (step == warm) meter_start(&meter, milliseconds);
        if (step > warm && step % 256 == 0 && !meter_goes_on(&meter, 256)) break;
    }
    printf("ns %.4f\n", meter_median(&meter));
    return 0;
}
