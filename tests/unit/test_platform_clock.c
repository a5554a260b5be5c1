/* The recorder's clock agrees with the kernel's, and does not run backwards by more than its error. */
#include "check.h"
#include "platform/clock.h"

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define ERROR_MOST 20000 /* ns; about 1000 is seen */

static uint64_t start;

static uint64_t kernel_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec - start;
}

/* Asking ours before and after the kernel's brackets it, however long we are held up in between. */
static void *compare(void *worst) {
    uint64_t last = 0;
    for (;;) {
        uint64_t before = clock_now(), kernel = kernel_time(), after = clock_now();
        uint64_t error = before > kernel ? before - kernel : after < kernel ? kernel - after : 0;
        if (last > before && last - before > error) error = last - before;
        if (error > *(uint64_t *)worst) *(uint64_t *)worst = error;
        last = after;
        if (kernel > 500000000) return NULL;
    }
}

int main(void) {
    start = kernel_time();
    clock_start(start);
    pthread_t other;
    uint64_t worst[2] = {0, 0};
    pthread_create(&other, NULL, compare, &worst[0]);
    compare(&worst[1]);
    pthread_join(other, NULL);
    fprintf(stderr, "largest error: %lu ns, %lu ns\n", worst[0], worst[1]);
    CHECK(worst[0] < ERROR_MOST && worst[1] < ERROR_MOST);
    return check_result();
}
