#include "model/model.h"

#include <math.h>

/* The normal interval, widened by the variance of one more typical sample. Where n samples have about equal
 * weight w, variance / value is just under w, so the added term is that of sample n + 1: z·w·√n becomes
 * z·w·√(n + 1). With the variance itself estimated from few samples the plain interval covers too rarely: for
 * an expected 3, 5 and 30 samples in 80, 87 and 93 % of runs, with the term added in 95, 96 and 95 %. It
 * vanishes as n grows and for exact figures, which have no variance. */
double estimate_error(struct estimate estimate) {
    if (!(estimate.value > 0)) return estimate.unseen;
    if (!(estimate.variance > 0)) return 0;
    double typical = estimate.variance / estimate.value;
    double added = fmin(typical * typical, estimate.variance);
    return 1.96 * sqrt(estimate.variance + added);
}

struct estimate estimate_add(struct estimate a, struct estimate b) {
    return (struct estimate){
        a.value + b.value, a.variance + b.variance, a.unseen > b.unseen ? a.unseen : b.unseen};
}

void figures_clear(struct figures *figures) {
    *figures = (struct figures){.oldest = UINT64_MAX};
}

void figures_add(struct figures *sum, const struct figures *figures) {
    sum->live_bytes = estimate_add(sum->live_bytes, figures->live_bytes);
    sum->live_objects = estimate_add(sum->live_objects, figures->live_objects);
    sum->total_bytes = estimate_add(sum->total_bytes, figures->total_bytes);
    sum->total_objects = estimate_add(sum->total_objects, figures->total_objects);
    sum->freed_bytes += figures->freed_bytes;
    sum->freed_objects += figures->freed_objects;
    sum->inherited_bytes += figures->inherited_bytes;
    sum->peak_bytes += figures->peak_bytes;
    sum->peak_objects += figures->peak_objects;
    sum->at_peak_bytes = estimate_add(sum->at_peak_bytes, figures->at_peak_bytes);
    sum->at_peak_objects = estimate_add(sum->at_peak_objects, figures->at_peak_objects);
    sum->temporary_objects += figures->temporary_objects;
    sum->temporary_bytes += figures->temporary_bytes;
    sum->samples += figures->samples;
    sum->live_samples += figures->live_samples;
    sum->sampled_bytes += figures->sampled_bytes;
    sum->sampled_live_bytes += figures->sampled_live_bytes;
    for (int i = 0; i < LIFETIME_BUCKETS; i++) {
        sum->lifetime[i] += figures->lifetime[i];
        sum->ages[i] += figures->ages[i];
    }
    for (int i = 0; i < BIRTH_PARTS; i++) sum->births[i] += figures->births[i];
    if (figures->oldest < sum->oldest) sum->oldest = figures->oldest;
}
