/* The sampler's arithmetic: when to sample, and what a sample stands for. docs/sampling.md derives it; (1) to (3)
 * are its equations.
 *
 * Sampling points fall on the bytes that a thread allocates as a Poisson process, one point in `rate` bytes on
 * average (the sampling interval). An allocation is sampled if a point falls into it: with probability p = 1 -
 * exp(-size / rate) (1). It then counts as 1 / p objects (2) and size / p bytes (3), which makes every sum of them
 * unbiased.
 *
 * Nothing here needs libm, since the profiled program gets no library but libc. */
#ifndef MALLOSCOPE_CORE_SAMPLER_H
#define MALLOSCOPE_CORE_SAMPLER_H

#include "core/recording.h"

#include <stdint.h>

/* The random number generator xoshiro256+. Its state is four words, not all of them zero. */
void sampler_random_seed(uint64_t state[4], uint64_t seed);
uint64_t sampler_random_next(uint64_t state[4]);

/* Bytes up to and including the next sampling point: exponentially distributed with mean `rate`, rounded up, at
 * least 1. An allocation of `size` bytes is sampled if this is <= size, which has exactly the probability (1). */
uint64_t sampler_draw(uint64_t state[4], uint64_t rate);

/* A number >= 0 as a whole number, rounded down; UINT64_MAX if it is too large. */
static inline uint64_t sampler_whole_number(double value) {
    return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}

/* The weight in bytes (3), in units of 1 / BYTE_ONE. At rate 1 (exact mode) it is the size itself. */
__attribute__((noinline)) uint64_t sampler_weight_sampled(uint64_t size, uint64_t rate);

static inline uint64_t sampler_weight(uint64_t size, uint64_t rate) {
    return rate <= 1 || size == 0 ? size * BYTE_ONE : sampler_weight_sampled(size, rate);
}

/* The weight in objects (2) of a block with one object, in units of 1 / OBJECT_ONE, from its size and its weight in
 * bytes. A block of 0 bytes counts as one object. */
static inline uint64_t sampler_objects(uint64_t size, uint64_t weight) {
    if (weight == size * BYTE_ONE) return OBJECT_ONE;
    /* NOLINTNEXTLINE(bugprone-integer-division): the quotient is whole. */
    return sampler_whole_number((double)weight / (double)size * (OBJECT_ONE / BYTE_ONE) + 0.5);
}

#endif
