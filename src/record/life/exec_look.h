/* What is about to be executed: can it carry the recorder? A look at the file, before exec, by the process that
 * executes it.
 *
 * Runs in vfork children, which share the memory of their parent, and in signal handlers: it keeps everything on the
 * stack, in about 4 KiB, and makes only system calls of its own. */
#ifndef MALLOSCOPE_RECORD_LIFE_EXEC_LOOK_H
#define MALLOSCOPE_RECORD_LIFE_EXEC_LOOK_H

#include "core/recording.h"

#include <stdbool.h>

#define EXEC_PATH_MAX 512

struct exec_finding {
    enum unrecorded_reason reason; /* UNRECORDED_NONE: it is recorded, as far as can be seen */
    bool bears;                    /* it can be started with the recorder in LD_PRELOAD */
    bool is_program;               /* an ELF file was found and read */
    bool is_unknown;               /* neither an ELF file nor a script: execvp gives it to the shell */
    char path[EXEC_PATH_MAX];      /* of the ELF file that was looked at; may be cut; "" if none was */
};

/* Looks at the file that execveat(folder, path, ..., flags) would execute; of a script, at its interpreter. What
 * cannot be read is taken for a program that bears the recorder. */
void exec_look(int folder, const char *path, int flags, struct exec_finding *ret_finding);

#endif
