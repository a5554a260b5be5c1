/* Random replacement: OBJECTS live blocks; each step frees one at random and allocates another in its place.
 * Caches are cold on nearly every step, as in a large server.
 *
 *     replace MILLISECONDS OBJECTS SMALLEST LARGEST
 *
 * Prints nanoseconds per free and malloc, filling excluded. */
#include "clock.h"

int main(int argc, char **argv) {
    double milliseconds = (double)argument(argc, argv, 1, 300);
    uint64_t objects = argument(argc, argv, 2, 1000000);
    uint32_t sizes[SIZES];
    draw_sizes(sizes, (uint32_t)argument(argc, argv, 3, 16), (uint32_t)argument(argc, argv, 4, 512), 1);

    void **block = calloc(objects, sizeof *block);
    if (!block || objects == 0) return 1;
    for (uint64_t i = 0; i < objects; i++) {
        block[i] = malloc(sizes[i % SIZES]);
        touch(block[i]);
    }
    uint64_t state = 88172645463325252u, done = 0;
    static struct meter meter;
    meter_start(&meter, milliseconds);
    do {
        for (unsigned i = 0; i < 1024; i++) {
            uint64_t victim = (uint64_t)(((unsigned __int128)sampler_random_next(&state) * objects) >> 64);
            free(block[victim]);
            block[victim] = malloc(sizes[(done + i) % SIZES]);
            touch(block[victim]);
        }
        done += 1024;
    } while (meter_goes_on(&meter, 1024));
    printf("ns %.4f\n", meter_median(&meter));
    return 0;
}
