/* Gates: limits on what a run may leak, hold at its peak or allocate. Tests set them.
 *
 * An exact figure fails a gate if it is above the limit. An estimate fails it if the lower end of its 95 % interval
 * is above the limit, or if the sampled blocks alone are: these were there, however good the estimate is. So a
 * program that is exactly at its limit fails by chance in at most 1 of 40 runs. A program that is above its limit
 * by less than the error may pass; the message then says so. */
#ifndef MALLOSCOPE_CLI_RUN_GATES_H
#define MALLOSCOPE_CLI_RUN_GATES_H

#include "view/suppressions.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GATE_OFF UINT64_MAX

struct gates {
    uint64_t leaks, peak, allocations; /* the limits; GATE_OFF: there is no such gate */
    const char *suppressions_path, *junit_path;
    struct suppressions suppressions;
    bool junit_is_public; /* the umask decides who may read the file; otherwise its owner alone may */
    FILE *junit;
};

#define GATES_NONE                                                                                           \
    { .leaks = GATE_OFF, .peak = GATE_OFF, .allocations = GATE_OFF }

static inline bool gates_are_set(const struct gates *gates) {
    return gates->leaks != GATE_OFF || gates->peak != GATE_OFF || gates->allocations != GATE_OFF;
}

/* The run that is judged. */
struct gated_run {
    char *recording; /* NULL: the program was not recorded */
    const char *program;
    int status; /* of waitpid */
    double seconds;
    bool quiet; /* print nothing about gates that passed */
};

/* The functions that judge gates. They need names of code, and so more libraries than running a program does. */
struct gate_judge {
    /* Reads and opens what the gates need, before the program runs. */
    int (*prepare)(struct gates *gates, struct problem *problem);
    /* Prints which gates failed and the sites responsible, and writes the JUnit file. Returns 0,
     * PROBLEM_GATE, or what kept the gates from being judged. */
    int (*judge)(struct gates *gates, const struct gated_run *run);
    void (*free)(struct gates *gates);
};

extern const struct gate_judge gates_judge; /* only malloscope-commands is linked with it */

#endif
