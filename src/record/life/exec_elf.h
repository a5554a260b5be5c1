/* What the headers and the dynamic section of an ELF file say about whether it can carry the recorder. For exec_look.c,
 * whose promises hold here, too. */
#ifndef MALLOSCOPE_RECORD_LIFE_EXEC_ELF_H
#define MALLOSCOPE_RECORD_LIFE_EXEC_ELF_H

#include "core/recording.h"

#include <stdbool.h>

struct exec_elf {
    enum unrecorded_reason reason;
    bool bears; /* it can be started with the recorder in LD_PRELOAD */
};

struct exec_elf exec_elf_read(int file);

#endif
