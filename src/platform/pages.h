/* Zeroed memory of the recorder's own, straight from the kernel. */
#ifndef MALLOSCOPE_PLATFORM_PAGES_H
#define MALLOSCOPE_PLATFORM_PAGES_H

#include <stddef.h>

/* NULL: there is none, or system calls are forbidden (system.h). Only pages that are written become resident.
 */
void *pages_take(size_t size);

/* Where system calls are forbidden they are kept. */
void pages_give(void *pages, size_t size);

#endif
