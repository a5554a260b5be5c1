/* Whether what a file begins with is the header of a recording that can be read. */
#ifndef MALLOSCOPE_MODEL_HEADER_H
#define MALLOSCOPE_MODEL_HEADER_H

#include "base/problem.h"
#include "core/recording.h"

#include <sys/types.h>

/* `length` bytes of the header could be read. */
int header_check(
    const struct recording_header *header, ssize_t length, const char *path, struct problem *problem);

#endif
