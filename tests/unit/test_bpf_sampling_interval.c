/* The sampler in the kernel computes with whole numbers: its intervals are distributed as core/sampler.c's are. */
#include "attach/bpf/sampling_interval.h"
#include "check.h"
#include "core/sampler.h"

#include <math.h>
#include <stdint.h>

static double exponential(uint64_t random) {
    return (double)sampling_interval_exponential(random) * 0x1p-32;
}

static void test_it_is_minus_the_logarithm(void) {
    double worst = 0;
    for (int shift = 0; shift < 64; shift++) {
        for (uint64_t i = 1; i < 4000; i++) {
            uint64_t random = (i << 52 | i * UINT64_C(0x9e3779b97f4a7)) >> shift;
            if (!random) continue;
            double error = fabs(exponential(random) + log((double)random * 0x1p-64));
            if (error > worst) worst = error;
        }
    }
    CHECK(worst < 2e-8); /* 64 times the rounding of ln 2, most of it */
    CHECK(exponential(UINT64_MAX) < 1e-9);
    CHECK(fabs(exponential(0) - 64 * log(2)) < 1e-7);
}

/* All of (0, 1] in equal steps: the mean is 1 but for what the steps leave out. */
static void test_the_mean_is_right(void) {
    const uint64_t steps = 1 << 22;
    double sum = 0, squares = 0, below = 0;
    for (uint64_t i = 0; i < steps; i++) {
        double x = exponential((2 * i + 1) << (63 - 22));
        sum += x;
        squares += x * x;
        below += x < 0.5;
    }
    CHECK(fabs(sum / (double)steps - 1) < 1e-6);
    CHECK(fabs(squares / (double)steps - 2) < 1e-4);
    CHECK(fabs(below / (double)steps - (1 - exp(-0.5))) < 1e-6);
}

/* P(interval <= size) = 1 - exp(-size / rate), for sizes far below and above the rate. */
static void test_sizes_are_sampled_with_their_probability(void) {
    const uint64_t steps = 1 << 22;
    static const uint64_t rates[] = {512 << 10, 4096, 100}, sizes[] = {1, 64, 4096, 1 << 20, 4 << 20};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            uint64_t hits = 0;
            for (uint64_t i = 0; i < steps; i++)
                hits += sampling_interval_draw((2 * i + 1) << (63 - 22), rates[r]) <= sizes[s];
            double expected = 1 - exp(-(double)sizes[s] / (double)rates[r]);
            CHECK(fabs((double)hits / (double)steps - expected) < 1e-6);
        }
    }
}

static void test_it_agrees_with_the_recorder(void) {
    uint64_t state[4];
    sampler_random_seed(state, 1);
    double own = 0, other = 0;
    enum { DRAWS = 2000000 };
    for (int i = 0; i < DRAWS; i++) {
        own += (double)sampling_interval_draw(sampler_random_next(state), 512 << 10);
        other += (double)sampler_draw(state, 512 << 10);
    }
    /* Each sum has a standard error of 1 / sqrt(DRAWS). */
    CHECK(fabs(own / other - 1) < 5 * sqrt(2.0 / DRAWS));
}

static void test_the_greatest_rate_does_not_overflow(void) {
    uint64_t largest = sampling_interval_draw(0, SAMPLING_RATE_MAX);
    CHECK(fabs((double)largest / (64 * log(2) * (double)SAMPLING_RATE_MAX) - 1) < 1e-6);
    CHECK_EQUAL(sampling_interval_draw(UINT64_MAX, SAMPLING_RATE_MAX), 1);
}

int main(void) {
    test_it_is_minus_the_logarithm();
    test_the_mean_is_right();
    test_sizes_are_sampled_with_their_probability();
    test_it_agrees_with_the_recorder();
    test_the_greatest_rate_does_not_overflow();
    return check_result();
}
