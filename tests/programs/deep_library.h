/* What deep_library.c offers, and its program needs to know. */
#ifndef DEEP_LIBRARY_H
#define DEEP_LIBRARY_H

#include <stddef.h>

#define DEEP_WAYS  8u   /* in which the library frees a block */
#define DEEP_LEAST 100u /* bytes of a block that is handed over */

/* Takes up to `most` blocks of the program and frees them. Returns how many it got. */
unsigned deep_release(unsigned most);
void *deep_allocate(size_t size);

#endif
