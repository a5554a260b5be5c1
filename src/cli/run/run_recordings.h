/* Finding the recordings that a run has made. */
#ifndef MALLOSCOPE_CLI_RUN_RUN_RECORDINGS_H
#define MALLOSCOPE_CLI_RUN_RUN_RECORDINGS_H

#include "model/unrecorded_list.h"

#include <stddef.h>
#include <stdint.h>

struct run_recordings {
    char *main;      /* that of the program; if it became others by exec, that of the last. NULL = none */
    char **children; /* those of the programs that it started or was before */
    size_t child_count;
    struct unrecorded_list
        unrecorded; /* programs that all of these started or became, and that have no recording */
};

/* Finds the recordings that process `root` and its descendants have made: of the files whose names fit the pattern,
 * those that were begun at `start` (nanoseconds since the epoch) or later. If the pattern has no varying part,
 * `main` has that name afterwards. The caller frees them with run_recordings_free. */
void run_recordings_find(
    const char *pattern, int root, uint64_t start, struct run_recordings *ret_recordings);
void run_recordings_free(struct run_recordings *recordings);

#endif
