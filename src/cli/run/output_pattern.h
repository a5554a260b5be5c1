/* The pattern that names recordings: %p pid, %e program, %h host, %t time, %n counter, %% a percent sign. The
 * recorder expands it inside the program; here it is checked before the program starts, and the recordings
 * that came of it are found again. */
#ifndef MALLOSCOPE_CLI_RUN_OUTPUT_PATTERN_H
#define MALLOSCOPE_CLI_RUN_OUTPUT_PATTERN_H

#include "base/problem.h"

#include <stdbool.h>

/* Makes the pattern absolute (a folder gets the default name inside it) and checks that a recording can be
 * made: the folder is there and writable, and the file is not there unless `force`. The caller frees
 * `*ret_pattern`. */
int output_pattern_prepare(const char *given, bool force, char **ret_pattern, struct problem *problem);
/* The same for dumps, which take another name where one is there. */
int output_pattern_prepare_dumps(const char *given, char **ret_pattern, struct problem *problem);

#endif
