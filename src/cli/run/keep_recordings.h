/* Which recordings of a tree of processes stay, and in which form. */
#ifndef MALLOSCOPE_CLI_RUN_KEEP_RECORDINGS_H
#define MALLOSCOPE_CLI_RUN_KEEP_RECORDINGS_H

#include "base/problem.h"
#include "cli/run/run_recordings.h"

#include <stdbool.h>

#define KEEP_ALL UINT64_MAX

/* Removes the recordings of children but for the `most` whose heaps had the highest peaks, from the list too. Those
 * that may be in use stay besides. */
void keep_recordings(struct run_recordings *recordings, uint64_t most);

/* Packs all recordings into one archive beside that of the program, and removes those that are not in use.
 * `*ret_archive` is its path, which the caller frees. On failure all recordings stay. */
int keep_recordings_merged(const struct run_recordings *recordings, bool replace, bool quiet,
    char **ret_archive, struct problem *problem);

#endif
