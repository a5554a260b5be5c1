/* What the user names on the command line, turned into the paths of recordings. */
#ifndef MALLOSCOPE_MODEL_SOURCE_H
#define MALLOSCOPE_MODEL_SOURCE_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

struct source {
    char **paths; /* of the recordings that the name stands for, sorted */
    size_t count;
    bool is_folder;
    int pid; /* the process that was named; 0: the name is a path */
};

/* `name` is the path of a recording or an archive, a folder of recordings, or the number of a running process. A
 * path that does not exist is found all the same: opening it tells why it cannot be read. */
int source_find(const char *name, struct source *ret_source, struct problem *problem);
void source_free(struct source *source);

#endif
