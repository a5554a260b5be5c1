/* A mapped file that others may cut short while it is read.
 *
 * A load from a page beyond the new end of the file raises SIGBUS. While a file is mapped here, a signal handler
 * replaces such a page by zeros, and the reader goes on instead of being killed. A process has one such file mapped
 * at a time: a second mapped_file_open waits until the first file is closed. */
#ifndef MALLOSCOPE_MODEL_MAPPED_FILE_H
#define MALLOSCOPE_MODEL_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_file {
    int descriptor;
    uint8_t *bytes;
    uint64_t span; /* bytes mapped, a multiple of the page size: the file may grow into it */
};

/* Maps `span` bytes. With `own`, the mapping is private and may be written to. Returns 0 or a negative errno. */
int mapped_file_open(int descriptor, uint64_t span, bool own, struct mapped_file *ret_file);

/* Whether pages were replaced by zeros since the file was opened. */
bool mapped_file_lost_pages(const struct mapped_file *file);

/* Unmaps the file. Returns whether pages were replaced by zeros while it was open. */
bool mapped_file_close(struct mapped_file *file);

/* How many bytes of the mapping are within the file now. */
uint64_t mapped_file_size(const struct mapped_file *file);

#endif
