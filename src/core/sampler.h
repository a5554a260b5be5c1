/* The sampler's arithmetic: when to sample, and what a sample stands for. docs/sampling.md derives it all.
 *
 * Every byte allocated is a step; points fall on the steps as a Poisson process with one point in `rate`
 * bytes on average. An allocation is sampled when a point falls into it: with probability p = 1 - exp(-size /
 * rate). Its bytes then count size / p and its objects 1 / p, which makes every sum of them unbiased.
 *
 * Nothing here needs libm: the profiled program gets no library but libc. */
#ifndef MALLOSCOPE_CORE_SAMPLER_H
#define MALLOSCOPE_CORE_SAMPLER_H

#include "core/recording.h"

#include <stdint.h>

/* xoshiro256+: four words of state, not all zero. */
void sampler_random_seed(uint64_t state[4], uint64_t seed);
uint64_t sampler_random_next(uint64_t state[4]);

/* Steps until the next point: at least 1, exponential with mean `rate`, rounded up. An allocation of `size`
 * is sampled when this is <= size, which has probability 1 - exp(-size / rate) exactly. */
uint64_t sampler_draw(uint64_t state[4], uint64_t rate);

/* A number that is not negative, cut to whole, and at most what fits: sizes and rates may be anything. */
static inline uint64_t sampler_whole_number(double value) {
    return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}

/* size / p in BYTE_ONE. Rate 1 is exact mode: the size itself. */
__attribute__((noinline)) uint64_t sampler_weight_sampled(uint64_t size, uint64_t rate);

static inline uint64_t sampler_weight(uint64_t size, uint64_t rate) {
    return rate <= 1 || size == 0 ? size * BYTE_ONE : sampler_weight_sampled(size, rate);
}

/* 1 / p in OBJECT_ONE, from size and weight. A block of no bytes is one object. */
static inline uint64_t sampler_objects(uint64_t size, uint64_t weight) {
    if (weight == size * BYTE_ONE) return OBJECT_ONE;
    /* NOLINTNEXTLINE(bugprone-integer-division): the quotient is whole. */
    return sampler_whole_number((double)weight / (double)size * (OBJECT_ONE / BYTE_ONE) + 0.5);
}

#endif
