/* Where a stack walk stores its frames.
 *
 * Once `frames` is full, its upper half becomes a ring that holds the frames nearest to the root. The word in front
 * of the ring says that frames are missing there:
 *
 *     leaf ... frames[max / 2 - 1]   FRAME_OUTPUT_CUT   ring: the last frames of the walk */
#ifndef MALLOSCOPE_UNWIND_FRAME_OUTPUT_H
#define MALLOSCOPE_UNWIND_FRAME_OUTPUT_H

#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_OUTPUT_CUT ((uint64_t)FRAME_CUT << FRAME_KIND_SHIFT)

struct frame_output {
    uint64_t *frames;
    uint64_t *places; /* the stack pointer of each frame; NULL if nobody asks for it */
    uint32_t max, count;
    uint32_t ring; /* index of the oldest frame in the ring */
    bool cut;
};

static inline uint32_t frame_output_ring_first(const struct frame_output *output) {
    return output->max / 2 + 1;
}

static __attribute__((noinline)) void frame_output_store_in_ring(
    struct frame_output *output, uint64_t word, uint64_t place) {
    uint32_t first = frame_output_ring_first(output);
    output->frames[first - 1] = FRAME_OUTPUT_CUT;
    if (output->places) output->places[first - 1] = UINT64_MAX;
    output->cut = true;
    if (first >= output->max) return;
    output->frames[first + output->ring] = word;
    if (output->places) output->places[first + output->ring] = place;
    if (++output->ring == output->max - first) output->ring = 0;
}

static inline void frame_output_store(struct frame_output *output, uint64_t word, uint64_t place) {
    if (__builtin_expect(output->count >= output->max, 0)) {
        frame_output_store_in_ring(output, word, place);
        return;
    }
    if (__builtin_expect(output->places != NULL, 0)) output->places[output->count] = place;
    output->frames[output->count++] = word;
}

static inline void frame_output_reverse(uint64_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count / 2; i++) {
        uint64_t word = words[i];
        words[i] = words[count - 1 - i];
        words[count - 1 - i] = word;
    }
}

/* Rotates a ring so that it begins with the word that is at `start`. */
static inline void frame_output_rotate(uint64_t *words, uint32_t count, uint32_t start) {
    frame_output_reverse(words, start);
    frame_output_reverse(words + start, count - start);
    frame_output_reverse(words, count);
}

/* Puts the ring in order. Returns the number of words. `root`: the walk has come to the root of the stack; if it
 * has not, the ring does not hold the frames nearest to the root, and is left out. */
static inline uint32_t frame_output_finish(struct frame_output *output, bool root) {
    uint32_t first = frame_output_ring_first(output);
    if (!output->cut) return output->count;
    if (!root) return first;
    if (first >= output->max) return output->count;
    frame_output_rotate(output->frames + first, output->max - first, output->ring);
    if (output->places) frame_output_rotate(output->places + first, output->max - first, output->ring);
    return output->count;
}

#endif
