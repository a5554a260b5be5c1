/* Heaps whose allocators list what is live, instead of reporting each block. */
#ifndef MALLOSCOPE_RECORD_API_ENUMERATED_HEAPS_H
#define MALLOSCOPE_RECORD_API_ENUMERATED_HEAPS_H

#ifndef MSCOPE_LINKED
#define MSCOPE_LINKED
#endif
#include "malloscope.h"

/* `heap` and `name` are the heap's numbers in the recording. */
void enumerated_heaps_read(uint32_t heap, uint32_t name, mscope_enumerate *enumerate, void *context);

#endif
