/* malloc+free pairs: the shortest life a block can have, in a loop.
 *
 *     pairs MILLISECONDS SMALLEST LARGEST THREADS HELD
 *
 * HELD blocks are allocated first and kept; under the recorder each of them is made a sample (hold.h). Prints
 * nanoseconds per pair and thread, and how many live samples were held. */
#include <pthread.h>

#include "clock.h"
#include "hold.h"

#define CLOCK_EVERY 1024u /* pairs between two looks at the clock */

static struct {
    double milliseconds;
    uint32_t smallest, largest;
    pthread_barrier_t start;
} setting;

static void *run(void *argument_ns) {
    double *ns = argument_ns;
    uint32_t sizes[SIZES];
    draw_sizes(sizes, setting.smallest, setting.largest, 1);
    for (unsigned i = 0; i < SIZES; i++) { /* warm the allocator's caches */
        void *block = malloc(sizes[i]);
        touch(block);
        free(block);
    }
    struct meter meter;
    uint64_t done = 0;
    pthread_barrier_wait(&setting.start);
    meter_start(&meter, setting.milliseconds);
    do {
        for (unsigned i = 0; i < CLOCK_EVERY; i++) {
            void *block = malloc(sizes[(done + i) % SIZES]);
            touch(block);
            free(block);
        }
        done += CLOCK_EVERY;
    } while (meter_goes_on(&meter, CLOCK_EVERY));
    *ns = meter_median(&meter);
    return NULL;
}

int main(int argc, char **argv) {
    setting.milliseconds = (double)argument(argc, argv, 1, 200);
    setting.smallest = (uint32_t)argument(argc, argv, 2, 16);
    setting.largest = (uint32_t)argument(argc, argv, 3, 1024);
    unsigned threads = (unsigned)argument(argc, argv, 4, 1);
    unsigned long held = argument(argc, argv, 5, 0);
    if (threads < 1 || threads > 64 || setting.smallest > setting.largest) return 2;

    long samples = hold_samples(held, setting.smallest, setting.largest);
    pthread_t thread[64];
    double ns[64], sum = 0;
    pthread_barrier_init(&setting.start, NULL, threads);
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, &ns[i])) return 1;
    run(&ns[0]);
    for (unsigned i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < threads; i++) sum += ns[i];
    printf("ns %.4f\nheld %ld\n", sum / threads, samples);
    return 0;
}
