/* Compression for pprof and for the page. */
#ifndef MALLOSCOPE_FORMAT_GZIP_H
#define MALLOSCOPE_FORMAT_GZIP_H

#include <stddef.h>
#include <stdio.h>

/* Writes `bytes` as one gzip member without a time stamp, so that equal bytes give equal output. Errors of `out`
 * are left to its owner. */
void gzip_write(FILE *out, const void *bytes, size_t size);

#endif
