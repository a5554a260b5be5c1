/* The heap's peak without the bias of a maximum: docs/sampling.md, section 4, equations (12) to (14).
 *
 * The largest value of a noisy estimate is too large on average. So the sampling points are divided into two halves
 * at random. Each half has its own estimate of the heap's size, and when that estimate is largest, the other half
 * says how large the heap is:
 *
 *     half h      chooses the moment       seen(h)    = Σ s/q            over the live blocks with a point of half h
 *                 then the heap's size is  size(h)    = Σ s              over the same blocks: these are known
 *                                                     + Σ s/q            over the blocks with points of the other alone
 *
 *     q = 1 − exp(−s / 2R): the probability that a block of s bytes has a point of one half
 *
 * The points of the two halves are independent, so size(h) has no bias at a moment that half h has chosen.
 *
 * A recorder knows that a block was sampled, not how many points fell into it. peak_halves_of draws in which halves
 * they were, with the right conditional probabilities, from a hash of the sample. So a free finds the halves of its
 * allocation again.
 *
 * Exact recordings (header.rate = 1) keep no halves: their maximum has no bias. */
#ifndef MALLOSCOPE_CORE_PEAK_HALVES_H
#define MALLOSCOPE_CORE_PEAK_HALVES_H

#include "core/recording.h"
#include "core/sample.h"

#include <stdbool.h>
#include <stdint.h>

/* What a block adds to the sums of each half, in units of 1 / BYTE_ONE. */
struct half_weights {
    uint64_t seen[2], size[2];
};

/* The share of a sample of a heap with sampling interval `rate`. Rate 1: the block is known to both halves. */
struct half_weights peak_halves_of(const struct sample *sample, uint64_t rate);

/* A block was allocated, or freed. `alone` as in platform/counter.h. */
void peak_halves_grow(struct recording_header *header, const struct half_weights *weights, bool alone);
void peak_halves_shrink(struct recording_header *header, const struct half_weights *weights, bool alone);

/* A block is not to be counted, as if it had never been allocated. `was_at_peak`: it was live at the peak. */
void peak_halves_withdraw(
    struct recording_header *header, const struct half_weights *weights, bool was_at_peak);

/* The heap's size has changed by `bytes`, in units of 1 / BYTE_ONE, which are known without sampling. */
void peak_halves_change(struct recording_header *header, uint64_t bytes);

/* The heap was never larger than it is: the peak begins here. */
void peak_halves_restart(struct recording_header *header);

/* The estimated peak in bytes, of a heap that has `live` bytes now: never less than these, and never more than
 * header.peak_bytes, the maximum. */
double peak_halves_estimate(const struct recording_header *header, double live);

#endif
