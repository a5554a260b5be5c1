#ifndef MALLOSCOPE_FORMAT_GZIP_H
#define MALLOSCOPE_FORMAT_GZIP_H

#include <stddef.h>
#include <stdio.h>

/* Writes `bytes` as one gzip member, the same for the same bytes (no time stamp). Errors of
 * `out` are left to its owner. */
void gzip_write(FILE *out, const void *bytes, size_t size);

#endif
