/* The code table: functions of interpreted languages (Python's code objects). Name and file are copied when a
 * function is first met, so that frames hold no pointer into the program. */
#ifndef MALLOSCOPE_CORE_CODE_TABLE_H
#define MALLOSCOPE_CORE_CODE_TABLE_H

#include "core/arena.h"

#define CODE_NONE 0u

bool code_table_start(struct recording *recording);

struct code {
    const char *name; /* zero-terminated */
    uint32_t file;    /* its number in the name table */
    uint32_t first_line;
};

/* The number under which the code object with this key was noted, or CODE_NONE. The key is chosen by the caller,
 * not 0. */
uint32_t code_table_find(uint64_t key);

/* Notes a code object. CODE_NONE if there is no room, which is counted as DROP_NAME. */
uint32_t code_table_note(struct recording *recording, uint64_t key, const struct code *code);

/* Copies the parent's code objects at the fork into the recording of a forked child, under the same numbers. False
 * if there is no room. */
bool code_table_inherit(struct recording *child, const struct recording *parent);

#endif
