/* JUnit XML, the format in which CI systems read results of tests. */
#ifndef MALLOSCOPE_CLI_RUN_JUNIT_H
#define MALLOSCOPE_CLI_RUN_JUNIT_H

#include <stddef.h>
#include <stdio.h>

enum junit_outcome { JUNIT_PASSED, JUNIT_FAILED, JUNIT_ERROR /* the case could not be judged */ };

struct junit_case {
    const char *name;
    enum junit_outcome outcome;
    char *message; /* one line */
    char *details; /* any number of lines, or NULL */
};

/* The texts may hold any bytes. Returns 0 or a negative errno. */
int junit_write(FILE *out, const char *program, double seconds, const struct junit_case *cases, size_t count);

#endif
