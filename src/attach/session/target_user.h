/* The user that a process runs as. What the process says about itself (its files, its names) is that user's word. */
#ifndef MALLOSCOPE_ATTACH_SESSION_TARGET_USER_H
#define MALLOSCOPE_ATTACH_SESSION_TARGET_USER_H

#include <stdint.h>

/* The number of the user, plus 1. 0: not known, or not one user: its real, effective and saved user differ, or it
 * sees other files or other users than the tool does, as in a container. */
uint32_t target_user(int pid);

#endif
