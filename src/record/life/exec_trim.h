/* A successful exec does not return, and runs none of the recorder's code that ends a recording. So the recording is
 * finished just before, and goes on if exec fails. */
#ifndef MALLOSCOPE_RECORD_LIFE_EXEC_TRIM_H
#define MALLOSCOPE_RECORD_LIFE_EXEC_TRIM_H

#include <stdint.h>

struct exec_trim {
    uint64_t reserved; /* arena_reserved from before; 0: nothing was done */
};

/* To be called before an exec. In a program with several threads nothing is done: the others may be recording, up to
 * the moment at which exec ends them. Nothing is done in a vfork child either, whose memory is its parent's. */
struct exec_trim exec_trim_before(void);

/* To be called when the exec has failed. */
void exec_trim_undo(struct exec_trim trim);

#endif
