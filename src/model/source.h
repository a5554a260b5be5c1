/* Where recordings are: what the user names, turned into files that can be read. */
#ifndef MALLOSCOPE_MODEL_SOURCE_H
#define MALLOSCOPE_MODEL_SOURCE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The recordings that a source stands for, in the order of their names. */
struct source {
    char **paths;
    size_t count;
    bool is_folder;
    int pid; /* the process that was named, or 0 */
};

/* `name`: a path of a recording, a folder of recordings, or the number of a running process. */
int source_find(const char *name, struct source *ret_source, struct problem *problem);
void source_free(struct source *source);

struct recording_file {
    int descriptor;
    const char *path;  /* belongs to the source */
    int writer;        /* the process that is known to have it mapped, or 0 */
    bool is_glance;    /* see model_glance */
    bool is_passed_on; /* its snapshot goes into another file: parts that are all zero are to be known */

    bool is_archived; /* taken out of an archive; then what was known about it when it was put in: */
    uint64_t file_bytes, recorder_bytes;
};

/* Opens a recording for reading. Whether it is one is not known before it is read. */
int recording_file_open(
    const char *path, int writer, struct recording_file *ret_file, struct problem *problem);
void recording_file_close(struct recording_file *file);

#endif
