/* Which of the recordings of a run are still being written. */
#ifndef MALLOSCOPE_CLI_RUN_RECORDINGS_IN_USE_H
#define MALLOSCOPE_CLI_RUN_RECORDINGS_IN_USE_H

#include <stdbool.h>
#include <stddef.h>

/* For each path, whether a process has the file mapped, or may have: one look at all processes. A recording that is not
 * in use will not be written any more, because only a process that has it mapped ever opens it for writing. */
void recordings_in_use(char *const *paths, size_t count, bool *ret_in_use);

#endif
