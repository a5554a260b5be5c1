/* Gates: limits on what a run may leave behind, hold or allocate, for tests.
 *
 * An exact figure fails a gate if it is above the limit. An estimate fails it if it is certain enough: if the
 * lower end of its 95 % interval is above, or the samples alone are, which are real whatever the estimate. So
 * a program at its limit raises a false alarm in at most 1 of 40 runs; one that is above by less than the
 * error may pass, which is said. */
#ifndef MALLOSCOPE_CLI_RUN_GATES_H
#define MALLOSCOPE_CLI_RUN_GATES_H

#include "view/suppressions.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GATE_OFF UINT64_MAX

struct gates {
    uint64_t leaks, peak, allocations; /* limits, or GATE_OFF */
    const char *suppressions_path, *junit_path;
    struct suppressions suppressions;
    FILE *junit;
};

#define GATES_NONE                                                                                           \
    { .leaks = GATE_OFF, .peak = GATE_OFF, .allocations = GATE_OFF }

static inline bool gates_are_set(const struct gates *gates) {
    return gates->leaks != GATE_OFF || gates->peak != GATE_OFF || gates->allocations != GATE_OFF;
}

struct gated_run {
    char *recording; /* NULL: there is none */
    const char *program;
    int status; /* as of waitpid */
    double seconds;
    bool quiet; /* say nothing of gates that passed */
};

/* What judges the gates of a run. It needs the names of code, and so more libraries than running a program does. */
struct gate_judge {
    /* Reads and opens what the gates need, before the program runs. */
    int (*prepare)(struct gates *gates, struct problem *problem);
    /* Prints which gates failed and the sites responsible, and writes the JUnit file. Returns 0,
     * PROBLEM_GATE, or what kept the gates from being judged. */
    int (*judge)(struct gates *gates, const struct gated_run *run);
    void (*free)(struct gates *gates);
};

extern const struct gate_judge gates_judge;

#endif
