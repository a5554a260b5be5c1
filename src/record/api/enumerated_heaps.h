/* Heaps whose allocators do not report each block, but list what is live when they are asked (mscope_enumerate in
 * malloscope.h). */
#ifndef MALLOSCOPE_RECORD_API_ENUMERATED_HEAPS_H
#define MALLOSCOPE_RECORD_API_ENUMERATED_HEAPS_H

#ifndef MSCOPE_LINKED
#define MSCOPE_LINKED
#endif
#include "malloscope.h"

/* Calls `enumerate`, and brings the heap's figures to what it lists. `heap` is the number of the heap, and `name` that
 * of its name, in the recording. */
void enumerated_heaps_read(uint32_t heap, uint32_t name, mscope_enumerate *enumerate, void *context);

#endif
