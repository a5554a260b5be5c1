/* The program that is to be recorded: finding it as a shell would, and checking before it runs that it can be
 * recorded. A preloaded library does not see the allocations of every program (statically linked ones, for
 * instance). Such programs are refused here, with the reason, so that nobody gets an empty recording. */
#ifndef MALLOSCOPE_CLI_RUN_PROGRAM_H
#define MALLOSCOPE_CLI_RUN_PROGRAM_H

#include "base/problem.h"

/* The path of `command`, which is looked up in PATH unless it holds a slash. The caller frees `*ret_path`. */
int program_find(const char *command, char **ret_path, struct problem *problem);

/* Can the recorder see the allocations of the program at `path`? For a script that is the question about its
 * interpreter. If only a part of the allocations can be seen, `*ret_warning` is a sentence that says so, which the
 * caller frees; otherwise NULL. Files that are neither ELF nor script pass: the kernel will refuse them. */
int program_check(const char *path, char **ret_warning, struct problem *problem);

#endif
