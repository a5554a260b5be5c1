/* Whether the user who has called the tool may look into a process.
 *
 * The kernel decides that for whatever the tool opens, by the rights of the tool. But the file of the tool may have
 * been given capabilities (setcap), or belong to root and be set-uid: then the tool has rights that its caller has
 * not, and any user could look into the processes of all others. So the question is asked once more, with the rights
 * of the caller alone. */
#ifndef MALLOSCOPE_ATTACH_BPF_TARGET_ACCESS_H
#define MALLOSCOPE_ATTACH_BPF_TARGET_ACCESS_H

#include "base/problem.h"

#include <sys/types.h>

/* Fails, with an explanation, if the caller may not ptrace the process. To be called before anything of the process
 * is read, and again when probes have been put into it: it may have become a set-uid program meanwhile. */
int target_access_check(pid_t pid, struct problem *problem);

#endif
