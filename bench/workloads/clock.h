/* What the small workloads share: a clock, random sizes, and the line on which they report. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SIZES 4096u /* a power of two: sizes are drawn beforehand and read in a circle */

static inline double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* xorshift64: the same sequence in every run, so that each variant does the same work. */
static inline uint64_t sampler_random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline void draw_sizes(uint32_t sizes[SIZES], uint32_t smallest, uint32_t largest, uint64_t seed) {
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (unsigned i = 0; i < SIZES; i++)
        sizes[i] = smallest + (uint32_t)(sampler_random_next(&state) % (largest - smallest + 1));
}

/* The compiler may neither drop the allocation nor assume what it holds. */
static inline void touch(void *block) {
    if (!block) abort();
    __asm__ volatile("" : : "r"(block) : "memory");
    *(volatile char *)block = 1;
}

#define SLICE_NS   1e6
#define SLICES_MAX 4096u

/* Times a loop in slices of a millisecond. The result is that of the median slice: a slice in which another
 * process had the processor does not count, and each is long enough to hold its share of samples. */
struct meter {
    double begin, end, slice_begin;
    uint64_t slice_steps;
    unsigned slices;
    double ns[SLICES_MAX]; /* per step */
};

static inline void meter_start(struct meter *meter, double milliseconds) {
    meter->slices = 0;
    meter->slice_steps = 0;
    meter->begin = meter->slice_begin = now_ns();
    meter->end = meter->begin + milliseconds * 1e6;
}

/* Notes that so many steps were done; false when the time is over and a slice is complete. */
static inline int meter_goes_on(struct meter *meter, uint64_t steps) {
    double now = now_ns();
    meter->slice_steps += steps;
    if (now - meter->slice_begin < SLICE_NS) return 1;
    meter->ns[meter->slices++] = (now - meter->slice_begin) / (double)meter->slice_steps;
    meter->slice_begin = now;
    meter->slice_steps = 0;
    return now < meter->end && meter->slices < SLICES_MAX;
}

static inline int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static inline double meter_median(struct meter *meter) {
    qsort(meter->ns, meter->slices, sizeof *meter->ns, compare_doubles);
    return meter->ns[meter->slices / 2];
}

static inline unsigned long argument(int argc, char **argv, int index, unsigned long otherwise) {
    return index < argc ? strtoul(argv[index], NULL, 10) : otherwise;
}

#endif
