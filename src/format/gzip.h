#ifndef MALLOSCOPE_FORMAT_GZIP_H
#define MALLOSCOPE_FORMAT_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes `bytes` as one gzip member, the same for the same bytes (no time stamp). False without memory;
 * errors of `out` are left to its owner. */
bool gzip_write(FILE *out, const void *bytes, size_t size);

#endif
