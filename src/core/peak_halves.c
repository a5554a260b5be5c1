#include "core/peak_halves.h"

#include "core/sampler.h"
#include "platform/counter.h"

/* A number in [0, 1) that looks random and depends on the sample alone. No field that it depends on changes while
 * the block lives. A birth that comes out of a mark has lost its last and first bits. */
static double uniform_of(const struct sample *sample) {
    uint64_t z = sample_birth_known(sample->birth) * UINT64_C(0x9e3779b97f4a7c15) + sample->size;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

struct half_weights peak_halves_of(const struct sample *sample, uint64_t rate) {
    uint64_t known = sample->size * BYTE_ONE;
    struct half_weights all = {{known, known}, {known, known}};
    if (rate <= 1 || sample->size == 0) return all;
    /* Of the blocks with points, those with points of half 0 alone are (1 − q) q / (q (2 − q)) = (1 − q) / (2 − q). */
    uint64_t weight = sampler_weight(sample->size, rate < UINT64_MAX / 2 ? 2 * rate : rate);
    double q = (double)known / (double)weight, alone = (1 - q) / (2 - q), draw = uniform_of(sample);
    bool hit[2] = {draw < alone || draw >= 2 * alone, draw >= alone};
    struct half_weights weights;
    for (int half = 0; half < 2; half++) {
        weights.seen[half] = hit[half] ? weight : 0;
        weights.size[half] = hit[half] ? known : weight;
    }
    return weights;
}

void peak_halves_grow(struct recording_header *header, const struct half_weights *weights, bool alone) {
    for (int i = 0; i < 2; i++) counter_add(alone, &header->halves[i].size, weights->size[i]);
    for (int i = 0; i < 2; i++) {
        struct peak_half *half = &header->halves[i];
        if (!weights->seen[i]) continue;
        uint64_t seen = counter_sum(alone, &half->seen, weights->seen[i]);
        /* Signed: another thread may be between two of its additions. */
        if ((int64_t)seen > 0 && counter_raise(alone, &half->most_seen, seen))
            counter_store(&half->size_then, counter_load(&half->size));
    }
}

void peak_halves_shrink(struct recording_header *header, const struct half_weights *weights, bool alone) {
    for (int i = 0; i < 2; i++) {
        struct peak_half *half = &header->halves[i];
        if (weights->seen[i]) counter_add(alone, &half->seen, -weights->seen[i]);
        counter_add(alone, &half->size, -weights->size[i]);
    }
}

void peak_halves_withdraw(
    struct recording_header *header, const struct half_weights *weights, bool was_at_peak) {
    peak_halves_shrink(header, weights, false);
    for (int i = 0; i < 2 && was_at_peak; i++) {
        counter_add(false, &header->halves[i].most_seen, -weights->seen[i]);
        counter_add(false, &header->halves[i].size_then, -weights->size[i]);
    }
}

void peak_halves_change(struct recording_header *header, uint64_t bytes) {
    struct half_weights weights = {{bytes, bytes}, {bytes, bytes}};
    peak_halves_grow(header, &weights, false);
}

void peak_halves_restart(struct recording_header *header) {
    for (int i = 0; i < 2; i++) {
        struct peak_half *half = &header->halves[i];
        counter_store(&half->most_seen, counter_load(&half->seen));
        counter_store(&half->size_then, counter_load(&half->size));
    }
}

double peak_halves_estimate(const struct recording_header *header, double live) {
    double most = (double)header->peak_bytes / BYTE_ONE;
    if (most < live) most = live;
    /* A recording with samples and without halves is one that only knows the size of the memory. */
    if (header->rate == 1 || !(header->halves[0].most_seen || header->halves[1].most_seen)) return most;
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        int64_t size = (int64_t)header->halves[i].size_then;
        if (size > 0) sum += (double)size / BYTE_ONE;
    }
    double estimate = sum / 2;
    return estimate < live ? live : estimate < most ? estimate : most;
}
