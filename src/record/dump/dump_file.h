/* The file of a dump. It appears whole or not at all: it is written under another name in the same folder and
 * renamed at the end.
 *
 * A dump may be made in a signal handler that interrupted the recorder or libc, on a small stack. So nothing
 * here allocates or takes a lock, and a dump's memory is mapped (platform/pages.h). errno may change if there is
 * no memory: whoever begins a dump restores it. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_FILE_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_FILE_H

#include "core/arena.h"

#include <stddef.h>
#include <stdint.h>

#define DUMP_BUFFER 65536u

/* All memory that a dump needs, apart from that of its format. */
struct dump_file {
    int descriptor;
    uint64_t size_limit;           /* RLIMIT_FSIZE: writing beyond it would raise SIGXFSZ in the program */
    char path[RECORDING_PATH_MAX]; /* filled in by the caller, before dump_file_start */
    char temporary[RECORDING_PATH_MAX + 64];

    /* For dump_text.c: where in the file the buffer goes, how much of it is filled, and the first error. */
    uint64_t written;
    size_t filled;
    int error;

    _Alignas(64) uint8_t buffer[DUMP_BUFFER];
};

/* NULL: there is no memory. */
struct dump_file *dump_file_new(void);
void dump_file_free(struct dump_file *file);

/* The functions below return 0 or a negative errno. */

/* Creates the temporary file. -EEXIST: there is a file `file->path` already. */
int dump_file_start(struct dump_file *file);

/* Closes the file, and renames it to `file->path` if `error` is 0; otherwise removes it. Returns `error`, or
 * what went wrong here: -EEXIST if another file took the name meanwhile. */
int dump_file_end(struct dump_file *file, int error);

int dump_file_put(struct dump_file *file, uint64_t offset, const void *bytes, size_t size);
int dump_file_set_size(struct dump_file *file, uint64_t size);

#endif
