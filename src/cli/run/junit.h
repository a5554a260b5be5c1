/* JUnit XML: what CI systems show of tests. */
#ifndef MALLOSCOPE_CLI_RUN_JUNIT_H
#define MALLOSCOPE_CLI_RUN_JUNIT_H

#include <stddef.h>
#include <stdio.h>

enum junit_outcome { JUNIT_PASSED, JUNIT_FAILED, JUNIT_ERROR /* it could not be judged */ };

struct junit_case {
    const char *name;
    enum junit_outcome outcome;
    char *message; /* one line */
    char *details; /* several, or NULL */
};

/* Text may hold anything. Returns 0 or a negative errno. */
int junit_write(FILE *out, const char *program, double seconds, const struct junit_case *cases, size_t count);

#endif
