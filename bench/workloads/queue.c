/* Growth, of live blocks: OBJECTS are held; each step frees the oldest and allocates another in its place. The memory
 * is walked in order, so that it is fetched ahead whatever the number, and what is left is the price of an event.
 *
 *     queue MILLISECONDS OBJECTS
 *
 * Prints nanoseconds per free and malloc, filling excluded, and nanoseconds per malloc of the filling. */
#include "clock.h"

#define SIZE 32

int main(int argc, char **argv) {
    double milliseconds = (double)argument(argc, argv, 1, 300);
    uint64_t objects = argument(argc, argv, 2, 1000000), oldest = 0;
    void **block = malloc(objects * sizeof *block);
    if (!block || objects == 0) return 1;
    double begin = now_ns();
    for (uint64_t i = 0; i < objects; i++) {
        block[i] = malloc(SIZE);
        touch(block[i]);
    }
    double filled = (now_ns() - begin) / (double)objects;
    static struct meter meter;
    meter_start(&meter, milliseconds);
    do
        for (unsigned i = 0; i < 1024; i++) {
            free(block[oldest]);
            block[oldest] = malloc(SIZE);
            touch(block[oldest]);
            if (++oldest == objects) oldest = 0;
        }
    while (meter_goes_on(&meter, 1024));
    printf("ns %.4f\nfill %.4f\n", meter_median(&meter), filled);
    return 0;
}
