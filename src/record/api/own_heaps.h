/* The program's own heaps (malloscope.h): arenas, pools and slabs whose allocations the program reports.
 *
 * Reported allocations are sampled as malloc's are. Each heap has a rate of its own, but all heaps share one countdown
 * per thread. It counts units, of which HEAP_UNITS are a mean sampling interval in every heap:
 *
 *     charge for `size` bytes in a heap of rate r  =  size × HEAP_UNITS / r
 *
 * Sampled blocks carry no mark. They are found by heap and address: recorder.heap_index. */
#ifndef MALLOSCOPE_RECORD_API_OWN_HEAPS_H
#define MALLOSCOPE_RECORD_API_OWN_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To be called when the recording begins: it gets the heaps that were registered before. */
void own_heaps_start(void);

/* Whether a heap of this number was registered. */
bool own_heaps_has(uint32_t heap);

/* The heap's number in the recording. HEAP_NONE: the calling thread cannot record anything in it now. */
uint32_t own_heaps_number(uint32_t heap);

/* Asks the heaps that were registered with an `enumerate` function for what is live. To be called before figures are
 * read. */
void own_heaps_enumerate(void);

/* To be called in a forked child: a thread that was enumerating heaps in the parent is not there. */
void own_heaps_after_fork(void);

#endif
