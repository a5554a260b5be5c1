/* Estimates with their uncertainty, and the figures that are known of each stack.
 *
 * docs/sampling.md derives all of them. */
#ifndef MALLOSCOPE_MODEL_FIGURES_H
#define MALLOSCOPE_MODEL_FIGURES_H

#include "core/recording.h"

#include <stdint.h>

/* An unbiased estimate. */
struct estimate {
    double value;
    double variance; /* of the estimate's error; 0: the value is exact */
    double
        unseen; /* with probability 95 %, no more than this exists without one sample of it. It is the error of an
                        estimate that rests on no sample. */
};

/* Half the width of the 95 % confidence interval. */
double estimate_error(struct estimate estimate);
struct estimate estimate_add(struct estimate a, struct estimate b);

#define BIRTH_PARTS 8 /* the time that was recorded, divided into equal parts */

/* An estimate that rests on fewer samples is rough, and the reports say so. */
#define FEW_SAMPLES 100

/* The figures of one stack, or the sum of those of several stacks. */
struct figures {
    struct estimate live_bytes, live_objects;
    struct estimate total_bytes, total_objects; /* everything ever allocated */
    double freed_bytes, freed_objects;
    double
        inherited_bytes; /* live bytes that a forked child took over: part of live and peak, not of total */
    double own_peak_bytes, own_peak_objects;        /* a stack's own peak; a sum of them is an upper bound */
    struct estimate at_peak_bytes, at_peak_objects; /* live when the whole heap was largest */
    double temporary_objects, temporary_bytes;      /* freed within about a millisecond (TEMPORARY_BUCKETS) */
    uint64_t samples;                               /* sampled allocations, on which total_* rests */
    uint64_t live_samples;                          /* sampled blocks that are live, on which live_* rests */
    double sampled_bytes;                           /* sum of the sizes of all samples, not weighted */
    double sampled_live_bytes;
    double lifetime[LIFETIME_BUCKETS]; /* freed objects by lifetime (core/recording.h) */
    uint32_t births[BIRTH_PARTS];      /* live samples by the part of the run in which they were allocated */
    uint32_t ages[LIFETIME_BUCKETS];   /* live samples by age, in the buckets of `lifetime` */
    uint64_t
        oldest; /* when the oldest live sample was allocated, in ns since the start; UINT64_MAX: there is none */
};

void figures_clear(struct figures *figures);
void figures_add(struct figures *sum, const struct figures *figures);

#endif
