/* Numbers for readers of heap_v2, who rescale what they read.
 *
 * A reader takes the count n and the bytes b of a line for sampled values, and multiplies both by 1 / (1 -
 * exp(-(b/n) / rate)). That is right if all objects of the line have one size. Our estimates weigh each sample by
 * its own size. So what is written is not what was sampled, but whole numbers that the reader's formula turns into
 * our estimate. */
#ifndef MALLOSCOPE_FORMAT_HEAP_V2_NUMBERS_H
#define MALLOSCOPE_FORMAT_HEAP_V2_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

struct heap_v2_value {
    uint64_t objects, bytes;
};

/* What a reader makes of a line: its formula. */
void heap_v2_numbers_read(struct heap_v2_value raw, double rate, double *ret_objects, double *ret_bytes);

#define HEAP_V2_LINES_MAX 2

/* Fills `lines` with what to write for an estimate, and returns how many lines that takes:
 *     0  the estimate is 0 bytes
 *     1  a single line gives bytes and objects
 *     2  the sizes are too mixed for one line; the sums over both lines give bytes and objects
 * At a rate of 1 nothing is rescaled: pprof leaves such values alone, and google-pprof's factor is 1 for objects of
 * more than a few bytes.
 *
 * An estimate that comes from samples has bytes ≥ rate. A smaller one cannot be written, and reads as `rate`. */
size_t heap_v2_numbers_lines(
    double objects, double bytes, double rate, struct heap_v2_value lines[HEAP_V2_LINES_MAX]);

#endif
