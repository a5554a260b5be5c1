#include "model/peak.h"

#include "base/confidence_interval.h"
#include "core/peak_halves.h"

#include <math.h>

/* What is at the peak, as the stacks have it. */
struct sums {
    double bytes, variance, live, inherited;
};

static struct sums sum_stacks(const struct model *model, size_t first) {
    struct sums sums = {0};
    for (size_t i = first; i < model->stack_count; i++) {
        const struct figures *figures = &model->stacks[i].figures;
        sums.bytes += figures->at_peak_bytes.value;
        sums.variance += figures->at_peak_bytes.variance;
        sums.live += figures->live_bytes.value;
        sums.inherited += figures->inherited_bytes;
    }
    return sums;
}

/* What the process that was added last may have held without one sample of it. */
static double unseen(const struct model *model) {
    double most = 0;
    for (size_t i = 0; i < model->heap_count; i++)
        if (model->heaps[i].process == model->process_count - 1)
            most = fmax(most, confidence_interval_unseen(model->heaps[i].rate));
    return most;
}

static void scale(struct estimate *estimate, double factor) {
    estimate->value *= factor;
    estimate->variance *= factor;
}

/* Takes `factor` times its variance off each stack, but no more than it has. Returns what is left of all. */
static double take_off(struct model *model, size_t first, double factor, bool apply) {
    double left = 0;
    for (size_t i = first; i < model->stack_count; i++) {
        struct figures *figures = &model->stacks[i].figures;
        double bytes = figures->at_peak_bytes.value;
        double kept = fmax(bytes - factor * figures->at_peak_bytes.variance, 0);
        left += kept;
        if (!apply || !(bytes > 0) || kept == bytes) continue;
        scale(&figures->at_peak_bytes, kept / bytes);
        scale(&figures->at_peak_objects, kept / bytes);
    }
    return left;
}

#define STEPS_MOST 60

/* Makes the figures at the peak add up to `wanted`, which is less than what they add up to: docs/sampling.md, (16).
 * How much is left is a falling function of the factor, which is found by bisection: without stacks that have
 * less than their share, the first guess is right. */
static void shrink(struct model *model, size_t first, const struct sums *sums, double wanted) {
    if (!(sums->variance > 0)) return;
    double low = (sums->bytes - wanted) / sums->variance, high = low;
    double tolerance = 1e-9 * sums->bytes;
    for (int i = 0; i < STEPS_MOST && take_off(model, first, high, false) > wanted + tolerance; i++)
        high *= 2;
    for (int i = 0; i < STEPS_MOST && low < high; i++) {
        double middle = (low + high) / 2, left = take_off(model, first, middle, false);
        if (fabs(left - wanted) <= tolerance)
            high = low = middle;
        else if (left > wanted)
            low = middle;
        else
            high = middle;
    }
    take_off(model, first, high, true);
}

void peak_settle(
    struct model *model, const struct recording_header *header, size_t first_stack, double allocated) {
    struct totals *totals = &model->totals;
    struct sums sums = sum_stacks(model, first_stack);
    double bound = fmax(allocated + sums.inherited, sums.live), missed = fmin(unseen(model), bound);
    /* The header of a running program is copied before its stacks, which may have grown past the peak in it. */
    double most = fmax((double)header->peak_bytes / BYTE_ONE, sums.live);
    double value = fmin(peak_halves_estimate(header, sums.live), bound);
    double relative = sums.bytes > 0 ? sums.variance / sums.bytes : 0;
    struct estimate peak = {value, relative * value, missed}, largest = {most, relative * most, missed};
    if (sums.bytes > value) shrink(model, first_stack, &sums, value);
    model->processes[model->process_count - 1].peak = peak;
    totals->peak.value += value;
    totals->peak.variance += peak.variance;
    totals->peak.unseen += missed;
    totals->peak_at_most += fmax(fmin(most + estimate_error(largest), bound), value);
}
