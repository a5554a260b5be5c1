/* The dumps that `malloscope run` is asked to have the program write. */
#ifndef MALLOSCOPE_CLI_RUN_DUMP_OPTIONS_H
#define MALLOSCOPE_CLI_RUN_DUMP_OPTIONS_H

#include "base/problem.h"

struct dump_options {
    const char *pattern, *when, *signal; /* as given, NULL if not */
    int format;                          /* of dump_options_formats */
    char *absolute;                      /* the pattern; the caller frees it */
};

extern const char *const dump_options_formats[];

/* Checks them before the program starts. */
int dump_options_prepare(struct dump_options *options, struct problem *problem);

/* In the child that becomes the program. */
void dump_options_set_environment(const struct dump_options *options);

#endif
