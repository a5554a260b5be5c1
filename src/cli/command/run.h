/* Running a program and recording its heap. */
#ifndef MALLOSCOPE_CLI_COMMAND_RUN_H
#define MALLOSCOPE_CLI_COMMAND_RUN_H

#include "cli/run/gates.h"

/* Who judges gates: that takes names of code, and so more libraries than running a program does. */
struct run_judge {
    /* Reads and opens what the gates need, before the program runs. */
    int (*prepare)(struct gates *gates, struct problem *problem);
    /* Prints which gates failed and the sites responsible, and writes the JUnit file. Returns 0,
     * PROBLEM_GATE, or what kept the gates from being judged. */
    int (*judge)(struct gates *gates, const struct gated_run *run);
    void (*free)(struct gates *gates);
};

#define RUN_NEEDS_JUDGE (-1)

/* The command `run`. Returns its exit code; or RUN_NEEDS_JUDGE, before anything is done, if there are gates
 * and `judge` is NULL. */
int run_and_record(int argc, char **argv, const struct run_judge *judge);

#endif
