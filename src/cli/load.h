/* What a command works on: the model of a recording and its symbols. */
#ifndef MALLOSCOPE_CLI_LOAD_H
#define MALLOSCOPE_CLI_LOAD_H

#include "model/model.h"
#include "symbol/symbol.h"

struct loaded {
    struct model *model;
    struct resolver *resolver; /* NULL if not asked for */
};

/* Each of the sources is a recording, a folder of recordings or a PID; they are added up. With `symbols` all
 * addresses are resolved, behind a progress bar. Prints what goes wrong. Returns 0 or the exit code. */
int load_sources(char **sources, size_t count, bool symbols, struct loaded *ret_loaded);
void load_free(struct loaded *loaded);

/* The end of a command that has shown what it could: frees, and returns the exit code. That of a damaged
 * recording is PROBLEM_DAMAGED even though all that can be read was shown. */
int load_finish(struct loaded *loaded);

#endif
