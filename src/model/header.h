/* Whether a file begins with the header of a recording that this version can read. */
#ifndef MALLOSCOPE_MODEL_HEADER_H
#define MALLOSCOPE_MODEL_HEADER_H

#include "base/problem.h"
#include "core/recording.h"

#include <sys/types.h>

/* `length` bytes of the header were read; less than its size if the file is shorter, 0 or less if it is empty.
 * Fails with the reason. */
int header_check(
    const struct recording_header *header, ssize_t length, const char *path, struct problem *problem);

#endif
