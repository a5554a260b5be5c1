/* A file that appears whole or not at all: written under another name in the same folder, then renamed. */
#ifndef MALLOSCOPE_BASE_NEW_FILE_H
#define MALLOSCOPE_BASE_NEW_FILE_H

#include "base/problem.h"

#include <stdbool.h>

struct new_file {
    const char *path; /* the caller's */
    char *temporary;
    int descriptor; /* to write to; mode 0600 */
    bool replace;
};

/* Return 0 or a negative errno. Without `replace` a file that is there is left alone, and the result is
 * -EEXIST. */
int new_file_start(const char *path, bool replace, struct new_file *ret_file);
/* Gives it its name, unless `error` (a negative errno) says that it failed to be written. Returns that, or
 * what goes wrong here. */
int new_file_end(struct new_file *file, int error);

/* Puts such an error into words. */
int new_file_problem(int error, const char *path, struct problem *problem);

#endif
