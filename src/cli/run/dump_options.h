/* The options of `malloscope run` about dumps, which the program writes itself. */
#ifndef MALLOSCOPE_CLI_RUN_DUMP_OPTIONS_H
#define MALLOSCOPE_CLI_RUN_DUMP_OPTIONS_H

#include "base/problem.h"

struct dump_options {
    const char *pattern, *when, *signal; /* as given on the command line; NULL if not given */
    int format;                          /* index in dump_options_formats */
    char *absolute; /* the pattern as an absolute path; NULL: no dumps. The caller frees it */
};

extern const char *const dump_options_formats[];

/* Checks the options before the program starts, and sets `absolute`. */
int dump_options_prepare(struct dump_options *options, struct problem *problem);

/* Sets the environment variables by which the recorder learns of the dumps. The program inherits them. */
void dump_options_set_environment(const struct dump_options *options);

#endif
