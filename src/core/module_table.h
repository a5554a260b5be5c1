/* The module table: the files whose code the recorded frames lie in.
 *
 * The unwinder notes a module when its reading of the memory map first shows it (unwind/mapping_list.c), before it
 * stores a frame in it. So every frame has its module, also after the program has closed the library. No thread
 * waits for another. */
#ifndef MALLOSCOPE_CORE_MODULE_TABLE_H
#define MALLOSCOPE_CORE_MODULE_TABLE_H

#include "core/arena.h"
#include "platform/maps.h"

void module_table_start(struct recording *recording);

/* Makes sure that a module is in the recording. Returns the number by which frames are to name it, or one of these two.
 * In both cases frames are plain addresses. */
#define MODULE_BY_ADDRESS                                                                                    \
    (UINT32_MAX - 1) /* it is never unmapped, is not a file, or is too large for a frame word */
#define MODULE_NOT_NOTED UINT32_MAX /* there was no room (counted as DROP_MODULE): to be tried again */
uint32_t module_table_note(struct recording *recording, const struct mapped_code *code, uint64_t now);

/* Copies the parent's modules at the fork into the recording of a forked child, under the same numbers. False if
 * there is no room: the child cannot be recorded then, since inherited frames would name other modules than they
 * mean. */
bool module_table_inherit(struct recording *child, const struct recording *parent);

#endif
