/* Functions of interpreted languages: their names and files, copied when they are first met, so that frames
 * hold no pointer into the program. */
#ifndef MALLOSCOPE_CORE_CODE_TABLE_H
#define MALLOSCOPE_CORE_CODE_TABLE_H

#include "core/arena.h"

#define CODE_NONE 0u

bool code_table_start(struct recording *recording);

struct code {
    const char *name; /* zero-terminated */
    uint32_t file;    /* number of a name */
    uint32_t first_line;
};

/* The number under which the code with this `key` was noted, or CODE_NONE. */
uint32_t code_table_find(uint64_t key);

/* Notes it. CODE_NONE when there is no room, which is counted. */
uint32_t code_table_note(struct recording *recording, uint64_t key, const struct code *code);

/* The recording of a forked child begins with the code that its parent had noted at the fork. */
bool code_table_inherit(struct recording *child, const struct recording *parent);

#endif
