/* The recordings that came of a run. */
#ifndef MALLOSCOPE_CLI_RUN_RUN_RECORDINGS_H
#define MALLOSCOPE_CLI_RUN_RUN_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>

struct run_recordings {
    char *main;      /* of the program that was started; after exec, of what it became last. NULL = none */
    char **children; /* of the others */
    size_t child_count;
};

/* The recordings that `root` and its descendants made, from the pattern's files begun at `start` (ns since
 * the epoch) or later. If the pattern is a plain name, `main` has it afterwards. */
void run_recordings_find(
    const char *pattern, int root, uint64_t start, struct run_recordings *ret_recordings);
void run_recordings_free(struct run_recordings *recordings);

#endif
