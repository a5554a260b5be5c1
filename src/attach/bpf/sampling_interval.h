/* Draws the sampling interval, the number of bytes until the next sample, in whole numbers: BPF programs have no
 * floating point. The recorder in a program does the same in core/sampler.h.
 *
 * The interval is exponentially distributed: −ln(u) · rate, rounded up, for u uniform on (0, 1].
 *
 *     u = 2^−k · f with f in [√½, √2)     gives   −ln u = k ln 2 − ln f
 *     s = (f − 1) / (f + 1), |s| < 0.172  gives   ln f = 2 artanh(s) = 2 (s + s³/3 + s⁵/5 + …)
 *
 * All numbers are in fixed point with 32 binary places. Five terms of the series leave an error below 1e-9, which
 * is 0.0005 bytes at a rate of 512 KiB. The mean of all draws is right to 1e-9
 * (tests/unit/test_bpf_sampling_interval.c). */
#ifndef MALLOSCOPE_ATTACH_BPF_SAMPLING_INTERVAL_H
#define MALLOSCOPE_ATTACH_BPF_SAMPLING_INTERVAL_H

#include <linux/types.h>

/* The largest rate: with a larger one the product in sampling_interval_draw would overflow. */
#define SAMPLING_RATE_MAX 0xffffffffULL

#define SAMPLING_LN2       2977044472ULL          /* ln 2 · 2^32 */
#define SAMPLING_ROOT_HALF 3260954456333195553ULL /* √½ · 2^62 */

/* -ln(u) · 2^32 for u = random / 2^64. */
static inline __u64 sampling_interval_exponential(__u64 random) {
    if (random == 0) random = 1;
    __u64 k = 0, f = random;
    for (int step = 32; step > 0; step /= 2) {
        if (f >> (64 - step)) continue;
        f <<= step;
        k += step;
    }
    f >>= 2; /* f / 2^62 in [½, 1) */
    if (f < SAMPLING_ROOT_HALF) {
        f <<= 1;
        k++;
    }
    const __u64 one = 1ULL << 62;
    __u64 distance = f < one ? one - f : f - one;
    __u64 s = (distance << 1) / ((f + one) >> 31);
    __u64 q = (s * s) >> 32;
    __u64 sum = (1ULL << 32) / 9;
    sum = ((sum * q) >> 32) + (1ULL << 32) / 7;
    sum = ((sum * q) >> 32) + (1ULL << 32) / 5;
    sum = ((sum * q) >> 32) + (1ULL << 32) / 3;
    sum = ((sum * q) >> 32) + (1ULL << 32);
    __u64 log = (s * sum) >> 31;
    return f < one ? k * SAMPLING_LN2 + log : k * SAMPLING_LN2 - log;
}

/* Bytes until the next sample: at least 1. An allocation is sampled when this is <= its size. */
static inline __u64 sampling_interval_draw(__u64 random, __u64 rate) {
    __u64 exponential = sampling_interval_exponential(random);
    return (exponential >> 32) * rate + (((exponential & 0xffffffffULL) * rate) >> 32) + 1;
}

#endif
