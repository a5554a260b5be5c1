/* Numbers for readers that rescale.
 *
 * Readers of heap_v2 take a line's count n and bytes b for sampled values and multiply both by
 * 1 / (1 - exp(-(b/n) / rate)), which is right where all objects of a line are of one size. Our estimates
 * weigh every sample by its own size, so what is written is not what was sampled, but whole numbers that the
 * reader's formula turns into the estimate. */
#ifndef MALLOSCOPE_FORMAT_HEAP_V2_NUMBERS_H
#define MALLOSCOPE_FORMAT_HEAP_V2_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct heap_v2_value {
    uint64_t objects, bytes;
};

/* The reader's formula. */
void heap_v2_numbers_read(struct heap_v2_value raw, double rate, double *ret_objects, double *ret_bytes);

#define HEAP_V2_LINES_MAX 2

/* Fills `lines` with what to write for an estimate and returns how many lines it takes: 0 for an estimate of
 * no bytes, 1 where a single line gives bytes and objects, 2 where the sizes are so mixed that one line
 * cannot (the bytes are then right in sum, and so are the objects). At a rate of 1 nothing is rescaled: pprof
 * leaves such values alone, and google-pprof's factor is 1 for objects of more than a few bytes.
 *
 * An estimate that comes from samples has bytes >= rate; a smaller one cannot be written and comes out as
 * rate. */
size_t heap_v2_numbers_lines(
    double objects, double bytes, double rate, struct heap_v2_value lines[HEAP_V2_LINES_MAX]);

#endif
