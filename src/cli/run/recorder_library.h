/* The recorder library that `run` preloads. */
#ifndef MALLOSCOPE_CLI_RUN_RECORDER_LIBRARY_H
#define MALLOSCOPE_CLI_RUN_RECORDER_LIBRARY_H

#include "base/problem.h"

/* Finds the library: MALLOSCOPE_LIBRARY if that is set; otherwise libmalloscope.so beside the command (a build
 * folder), in the lib folders beside its bin folder, or in the folder that was configured for installation.
 * LD_PRELOAD separates paths by blanks and colons and knows no quoting. So a path that holds one of these is
 * replaced by a symbolic link to it. The caller frees `*ret_path`. */
int recorder_library_find(char **ret_path, struct problem *problem);

/* The new value of LD_PRELOAD: the library first, then what LD_PRELOAD held. The caller frees it. */
char *recorder_library_preload_value(const char *library, const char *existing);

#endif
