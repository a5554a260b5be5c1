/* The recorder library that `run` preloads. */
#ifndef MALLOSCOPE_CLI_RUN_RECORDER_LIBRARY_H
#define MALLOSCOPE_CLI_RUN_RECORDER_LIBRARY_H

#include "base/problem.h"

/* MALLOSCOPE_LIBRARY if set; else libmalloscope.so beside the command (a build folder), in the lib folders
 * beside its bin folder, or where it was configured to be installed. LD_PRELOAD separates paths by blanks and
 * colons and knows no quoting, so a path that holds one is replaced by a symbolic link to it. The caller
 * frees `*ret_path`. */
int recorder_library_find(char **ret_path, struct problem *problem);

/* The value of LD_PRELOAD with the library first and what was there behind it. The caller frees it. */
char *recorder_library_preload_value(const char *library, const char *existing);

#endif
