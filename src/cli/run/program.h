/* The program that is to be recorded: found as a shell would, and looked at before it runs. A preloaded
 * library cannot see every program; those it cannot see are told apart here, not by an empty recording
 * afterwards. */
#ifndef MALLOSCOPE_CLI_RUN_PROGRAM_H
#define MALLOSCOPE_CLI_RUN_PROGRAM_H

#include "base/problem.h"

/* The path of `command`, looked up in PATH unless it holds a slash. The caller frees `*ret_path`. */
int program_find(const char *command, char **ret_path, struct problem *problem);

/* Can the recorder see the allocations of the program at `path`? Scripts are judged by their interpreter.
 * Where it sees a part only, `*ret_warning` is a sentence to tell (the caller frees it), else NULL. Files
 * that are neither ELF nor script are left to the kernel. */
int program_check(const char *path, char **ret_warning, struct problem *problem);

#endif
