/* Starting a program, waiting for it, and ending as it did, so that the caller of malloscope sees no difference. */
#ifndef MALLOSCOPE_CLI_RUN_LAUNCH_H
#define MALLOSCOPE_CLI_RUN_LAUNCH_H

#include "base/problem.h"

struct launched {
    int pid;
    int status; /* of waitpid */
};

#define PID_TEXT_SIZE 12

/* Runs `path` with `arguments` (which ends with NULL) and waits for it. The child writes its pid to `pid_text` (of
 * PID_TEXT_SIZE bytes) before it becomes the program, so `pid_text` may be a part of the environment. While we
 * wait, SIGINT and SIGQUIT are left to the program, which gets them from the terminal too. SIGTERM, SIGHUP, SIGUSR1
 * and SIGUSR2 that are sent to us are passed on to the program. */
int launch_and_wait(const char *path, char **arguments, char *pid_text, struct launched *ret_launched,
    struct problem *problem);

/* Returns the exit code of the program. If a signal killed the program, kills this process by the same signal,
 * without a core dump of this process. */
int launch_pass_on(int status);

#endif
