/* The sampler: what it draws is exponential, what it weighs is unbiased. */
#include "check.h"
#include "core/sampler.h"

#include <math.h>
#include <stdlib.h>

/* Drawing n times, the mean of an exponential lies within 5 standard errors of `rate`, and so does the share
 * of intervals that reach into a block of a given size. */
static void check_draws(uint64_t rate) {
    uint64_t state[4];
    sampler_random_seed(state, 42 + rate);
    enum { N = 400000 };
    const double sizes[] = {0.01, 0.5, 1, 3};
    double sum = 0, hits[4] = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < N; i++) {
        uint64_t interval = sampler_draw(state, rate);
        if (interval < least) least = interval;
        sum += (double)interval;
        for (int s = 0; s < 4; s++) hits[s] += (double)interval <= floor(sizes[s] * (double)rate);
    }
    CHECK(least >= 1);
    /* The interval is rounded up to whole bytes: on average by one half, for rates well above one. */
    CHECK(fabs(sum / N - 0.5 - (double)rate) < 5 * (double)rate / sqrt(N) + 0.51);
    for (int s = 0; s < 4; s++) {
        double p = -expm1(-floor(sizes[s] * (double)rate) / (double)rate);
        CHECK(fabs(hits[s] / N - p) < 5 * sqrt(p * (1 - p) / N) + 1e-12);
    }
}

static void check_weights(void) {
    const uint64_t rates[] = {2, 64, 4096, 512 << 10, 1 << 30};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        for (double log_size = 0; log_size < 44; log_size += 0.37) {
            uint64_t size = (uint64_t)exp2(log_size);
            double exact = (double)size / -expm1(-(double)size / (double)rates[r]);
            double weight = (double)sampler_weight(size, rates[r]) / BYTE_ONE;
            CHECK(fabs(weight - exact) <= 0.5 / BYTE_ONE + 1e-9 * exact);
            double objects = (double)sampler_objects(size, sampler_weight(size, rates[r])) / OBJECT_ONE;
            CHECK(fabs(objects - exact / (double)size) <=
                  1.0 / OBJECT_ONE + 1.0 / BYTE_ONE / (double)size + 1e-9 * exact / (double)size);
        }
    }
    CHECK_EQUAL(sampler_weight(1000, 1), 1000 * BYTE_ONE);
    CHECK_EQUAL(sampler_objects(1000, 1000 * BYTE_ONE), OBJECT_ONE);
    CHECK_EQUAL(sampler_objects(0, 0), OBJECT_ONE);
    CHECK_EQUAL(sampler_weight(UINT64_C(1) << 45, 512 << 10), (UINT64_C(1) << 45) * BYTE_ONE);
}

/* The whole scheme on a stream of blocks: the mean over many runs of the estimated bytes and objects is the
 * truth. */
static void check_unbiased(void) {
    enum { RUNS = 2000, BLOCKS = 3000 };
    const uint64_t rate = 4096;
    double true_bytes = 0, bytes = 0, bytes_squared = 0, objects = 0, objects_squared = 0;
    uint64_t state[4], sizes_state[4];
    sampler_random_seed(state, 7);
    for (int run = 0; run < RUNS; run++) {
        sampler_random_seed(sizes_state, 99); /* the same blocks in each run */
        uint64_t countdown = sampler_draw(state, rate);
        double run_bytes = 0, run_objects = 0;
        true_bytes = 0;
        for (int i = 0; i < BLOCKS; i++) {
            uint64_t size = UINT64_C(1) << (sampler_random_next(sizes_state) >> 60);
            true_bytes += (double)size;
            if (countdown > size) {
                countdown -= size;
                continue;
            }
            countdown = sampler_draw(state, rate);
            uint64_t weight = sampler_weight(size, rate);
            run_bytes += (double)weight / BYTE_ONE;
            run_objects += (double)sampler_objects(size, weight) / OBJECT_ONE;
        }
        bytes += run_bytes, bytes_squared += run_bytes * run_bytes;
        objects += run_objects, objects_squared += run_objects * run_objects;
    }
    double mean = bytes / RUNS, deviation = sqrt((bytes_squared / RUNS - mean * mean) / RUNS);
    CHECK(fabs(mean - true_bytes) < 4 * deviation);
    mean = objects / RUNS, deviation = sqrt((objects_squared / RUNS - mean * mean) / RUNS);
    CHECK(fabs(mean - BLOCKS) < 4 * deviation);
}

/* A recording may claim any size and rate, and a program any size of a block in a heap of its own. */
static void check_extremes(void) {
    uint64_t state[4];
    sampler_random_seed(state, 3);
    CHECK(sampler_weight(UINT64_C(1) << 62, 4096) == UINT64_MAX);
    CHECK(sampler_weight(1, UINT64_MAX) == UINT64_MAX);
    CHECK(sampler_objects(1, UINT64_MAX) == UINT64_MAX);
    for (int i = 0; i < 1000; i++) {
        uint64_t steps = sampler_draw(state, UINT64_MAX);
        CHECK(steps >= 1 && steps <= UINT64_C(1) << 63);
    }
}

int main(void) {
    check_extremes();
    check_draws(64);
    check_draws(4096);
    check_draws(512 << 10);
    check_weights();
    check_unbiased();
    return check_result();
}
