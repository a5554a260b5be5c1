/* Zeroed memory of the recorder's own, straight from the kernel; and space on disk for mapped pages. */
#ifndef MALLOSCOPE_PLATFORM_PAGES_H
#define MALLOSCOPE_PLATFORM_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* NULL: there is none, or system calls are forbidden (system.h). Only pages that are written become resident.
 */
void *pages_take(size_t size);

/* Where system calls are forbidden they are kept. */
void pages_give(void *pages, size_t size);

/* Whether the kernel knows pages_back: Linux 5.14 and later. */
bool pages_can_back(void);

/* Has the kernel give space on disk to pages of a shared mapping of a file, `start` being the first. Returns 0 or a
 * negative errno: -EFAULT where the disk is full, and a store into the pages would raise SIGBUS. */
int pages_back(void *start, size_t size);

#endif
