/* gated LEAKS ALLOCATIONS PEAK STATUS: frees ALLOCATIONS blocks one by one, loses LEAKS blocks of 1,000 bytes
 * at one place, holds PEAK bytes more in blocks of 1,000 until the end, and exits with STATUS. */
#include <stdlib.h>
#include <time.h>

static void *volatile last;

__attribute__((noinline)) static void allocate_often(long count) {
    for (; count > 0; count--) {
        last = malloc(100);
        free(last);
    }
}

__attribute__((noinline)) static void lose(long count) {
    for (; count > 0; count--) last = malloc(1000);
}

__attribute__((noinline)) static void hold(long count) {
    void **first = NULL;
    for (; count > 0; count--) {
        void **block = malloc(1000);
        if (!block) abort();
        *block = first;
        first = block;
    }
    while (first) {
        void **next = *first;
        free(first);
        first = next;
    }
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    allocate_often(atol(arguments[2]));
    /* So that what comes is not from the start of the run. */
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    lose(atol(arguments[1]));
    hold(atol(arguments[3]) / 1000);
    return atoi(arguments[4]);
}
