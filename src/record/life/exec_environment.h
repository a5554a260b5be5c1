/* The recorder in environments: LD_PRELOAD names it. Safe in signal handlers and vfork children. */
#ifndef MALLOSCOPE_RECORD_LIFE_EXEC_ENVIRONMENT_H
#define MALLOSCOPE_RECORD_LIFE_EXEC_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether an environment can be read: the kernel answers a bad pointer with EFAULT, where a look would crash. */
bool exec_environment_is_readable(char *const *environment);

/* Whether an environment has the program that gets it loaded with the recorder. */
bool exec_environment_has_us(char *const *environment);

/* Whether each of the recorder's files that the environment names by its path can be read from here. */
bool exec_environment_reaches_us(char *const *environment);

/* How large a copy without the recorder is at most: its number of pointers with the last, which is NULL, and the bytes
 * of its new texts. */
struct exec_environment_size {
    size_t pointers, bytes;
};
struct exec_environment_size exec_environment_size(char *const *environment);

/* Makes a copy without the recorder. Other libraries stay in LD_PRELOAD. Entries without the recorder are not copied
 * but pointed to. */
void exec_environment_copy(char *const *environment, char **copy, char *texts);

/* Takes the recorder out of this process's own environment, in place: no pointer is moved, because programs find the
 * kernel's auxiliary vector by counting the pointers in front of it. An LD_PRELOAD that holds nothing more becomes a
 * variable of the recorder's own. */
void exec_environment_leave(char **environment);

#endif
