/* The file of a recording, opened for reading. */
#ifndef MALLOSCOPE_MODEL_RECORDING_FILE_H
#define MALLOSCOPE_MODEL_RECORDING_FILE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

struct recording_file {
    int descriptor;
    const char *path; /* the caller's */
    int writer;       /* number of the process that is known to have the file mapped; 0: not known */

    /* How a snapshot of it is to be taken. */
    bool skip_resident_size; /* see struct model_load_options */
    bool will_be_written;    /* into another file: it is copied, and parts that are all zero are found out */

    /* A recording out of an archive, and what was known about the file when it was put in. */
    bool is_archived;
    uint32_t owner; /* number of the user who owns the archive */
    uint64_t file_bytes, recorder_bytes;
};

/* Opens a regular file. Whether it is a recording is not known before it is read. */
int recording_file_open(
    const char *path, int writer, struct recording_file *ret_file, struct problem *problem);
void recording_file_close(struct recording_file *file);

/* Whether the name ends as recordings are named, in ".mscope". */
bool recording_file_has_suffix(const char *name);

/* What the user can do if the kernel refuses access to a recording or a process. */
const char *recording_file_access_remedy(void);

#endif
