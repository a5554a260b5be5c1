/* Producer and consumer: one thread allocates, another frees, a ring of pointers between them.
 *
 *     handoff MILLISECONDS SMALLEST LARGEST
 *
 * Prints nanoseconds per block handed over. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "clock.h"

#define RING  1024u
#define BATCH 64u

static struct {
    _Alignas(64) _Atomic uint64_t produced;
    _Alignas(64) _Atomic uint64_t consumed;
    _Alignas(64) _Atomic int finished;
    _Alignas(64) void *slot[RING];
} ring;

static void *consume(void *unused) {
    (void)unused;
    uint64_t next = 0;
    for (;;) {
        uint64_t ready = atomic_load_explicit(&ring.produced, memory_order_acquire);
        if (ready == next) {
            if (atomic_load(&ring.finished) && atomic_load(&ring.produced) == next) return NULL;
            sched_yield();
            continue;
        }
        for (; next < ready; next++) free(ring.slot[next % RING]);
        atomic_store_explicit(&ring.consumed, next, memory_order_release);
    }
}

int main(int argc, char **argv) {
    double milliseconds = (double)argument(argc, argv, 1, 300);
    uint32_t sizes[SIZES];
    draw_sizes(sizes, (uint32_t)argument(argc, argv, 2, 16), (uint32_t)argument(argc, argv, 3, 1024), 1);

    pthread_t consumer;
    if (pthread_create(&consumer, NULL, consume, NULL)) return 1;
    uint64_t made = 0;
    static struct meter meter;
    meter_start(&meter, milliseconds);
    do {
        while (made + BATCH - atomic_load_explicit(&ring.consumed, memory_order_acquire) > RING)
            sched_yield();
        for (unsigned i = 0; i < BATCH; i++) {
            void *block = malloc(sizes[(made + i) % SIZES]);
            touch(block);
            ring.slot[(made + i) % RING] = block;
        }
        made += BATCH;
        atomic_store_explicit(&ring.produced, made, memory_order_release);
    } while (meter_goes_on(&meter, BATCH));
    atomic_store(&ring.finished, 1);
    pthread_join(consumer, NULL);
    printf("ns %.4f\n", meter_median(&meter));
    return 0;
}
