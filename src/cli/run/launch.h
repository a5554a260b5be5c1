/* Starting a program and standing in for it until it ends, as a shell's child would. */
#ifndef MALLOSCOPE_CLI_RUN_LAUNCH_H
#define MALLOSCOPE_CLI_RUN_LAUNCH_H

#include "base/problem.h"

struct launched {
    int pid;
    int status; /* as of waitpid */
};

#define PID_TEXT_SIZE 12

/* Runs `path` with `arguments` (which ends with NULL) and waits for it. `pid_text`, of PID_TEXT_SIZE, gets
 * its pid before it starts: it may be a part of the environment. While waiting, SIGINT and SIGQUIT from the
 * terminal are the program's alone, and SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 sent to us are passed on. */
int launch_and_wait(const char *path, char **arguments, char *pid_text, struct launched *ret_launched,
    struct problem *problem);

/* Ends like the program did: with its exit code, or by the signal that killed it (without a core dump of our
 * own). */
int launch_pass_on(int status);

#endif
