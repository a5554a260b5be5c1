/* Where a walk puts its frames. Once `frames` is full its upper half becomes a ring, which holds the frames
 * nearest to the root; the word before it says that frames are missing there. */
#ifndef MALLOSCOPE_UNWIND_OUTPUT_H
#define MALLOSCOPE_UNWIND_OUTPUT_H

#include "core/recording.h"

#include <stdbool.h>
#include <stdint.h>

#define OUTPUT_CUT ((uint64_t)FRAME_CUT << FRAME_KIND_SHIFT)

struct output {
    uint64_t *frames;
    uint32_t max, count;
    uint32_t ring; /* position in the ring, of the oldest frame */
    bool cut;
};

static inline uint32_t output_ring_first(const struct output *output) {
    return output->max / 2 + 1;
}

static __attribute__((noinline)) void output_store_in_ring(struct output *output, uint64_t word) {
    uint32_t first = output_ring_first(output);
    output->frames[first - 1] = OUTPUT_CUT;
    output->cut = true;
    if (first >= output->max) return;
    output->frames[first + output->ring] = word;
    if (++output->ring == output->max - first) output->ring = 0;
}

static inline void output_store(struct output *output, uint64_t word) {
    if (__builtin_expect(output->count < output->max, 1))
        output->frames[output->count++] = word;
    else
        output_store_in_ring(output, word);
}

static inline void output_reverse(uint64_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count / 2; i++) {
        uint64_t word = words[i];
        words[i] = words[count - 1 - i];
        words[count - 1 - i] = word;
    }
}

/* Puts the ring in order. Returns the number of words; without `root`, what the ring holds is not the root,
 * and is left out. */
static inline uint32_t output_finish(struct output *output, bool root) {
    uint32_t first = output_ring_first(output);
    if (!output->cut) return output->count;
    if (!root) return first;
    if (first >= output->max) return output->count;
    uint32_t size = output->max - first;
    output_reverse(output->frames + first, output->ring);
    output_reverse(output->frames + first + output->ring, size - output->ring);
    output_reverse(output->frames + first, size);
    return output->count;
}

#endif
