/* The program's own heaps (malloscope.h): arenas, pools, slabs that it reports to us.
 *
 * An allocation is sampled as malloc's are, and shares one countdown per thread with all other heaps, in
 * units of which a heap's mean interval is HEAP_UNITS: a heap of rate r charges size × HEAP_UNITS / r.
 * Sampled blocks stay as they are and are found by heap and address. */
#ifndef MALLOSCOPE_RECORD_API_OWN_HEAPS_H
#define MALLOSCOPE_RECORD_API_OWN_HEAPS_H

#define OWN_HEAPS 1024 /* the entry code compares with it; 0 is no heap */

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The recording begins: it is told of the heaps that were registered before. */
void own_heaps_start(void);

bool own_heaps_has(uint32_t heap);

/* Its number in the recording, if the calling thread can record something in it now; otherwise HEAP_NONE. */
uint32_t own_heaps_number(uint32_t heap);

/* The allocators that keep their own books tell what is live. */
void own_heaps_enumerate(void);

/* In a forked child: who was doing that in the parent is not here. */
void own_heaps_after_fork(void);

#endif
#endif
