/* The pattern that names recordings: %p pid, %e program, %h host, %t time, %n counter, %% a percent sign. The
 * recorder expands it inside the program. Here it is checked before the program starts. */
#ifndef MALLOSCOPE_CLI_RUN_OUTPUT_PATTERN_H
#define MALLOSCOPE_CLI_RUN_OUTPUT_PATTERN_H

#include "base/problem.h"

#include <stdbool.h>

/* Makes the pattern an absolute path (a folder becomes the default name inside it) and checks that a recording can be
 * made: the folder exists and can be written to, and the file does not exist, unless `force`. The caller frees
 * `*ret_pattern`. */
int output_pattern_prepare(const char *given, bool force, char **ret_pattern, struct problem *problem);
/* The same for dumps. Their files may exist: a dump then gets another name. */
int output_pattern_prepare_dumps(const char *given, char **ret_pattern, struct problem *problem);

#endif
