/* A file mapped for reading that may be cut short by others at any moment.
 *
 * Touching a page beyond the new end of the file raises SIGBUS. While a file is mapped here, the signal is
 * caught and the lost page replaced by zeros, so a reader goes on and finds nothing instead of dying. One
 * file is mapped at a time in a process: mapped_file_open waits for the former user. */
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

/* Returns 0 or a negative errno. `own`: the mapping may be written to, and what is written stays here. */
int mapped_file_open(int descriptor, uint64_t span, bool own, struct mapped_file *ret_file);

/* Whether pages have gone missing under the reader so far. */
bool mapped_file_lost_pages(const struct mapped_file *file);

/* The same, of all the time it was open. */
bool mapped_file_close(struct mapped_file *file);

/* How much of the mapping is in the file now. */
uint64_t mapped_file_size(const struct mapped_file *file);

#endif
