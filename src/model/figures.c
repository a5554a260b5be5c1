#include "model/figures.h"

#include "base/confidence_interval.h"

double estimate_error(struct estimate estimate) {
    return confidence_interval_error(estimate.value, estimate.variance, estimate.unseen);
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
    sum->own_peak_bytes += figures->own_peak_bytes;
    sum->own_peak_objects += figures->own_peak_objects;
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
