/* The modules: which files' code the recorded addresses lie in.
 *
 * They are noted when the capture of stacks first comes to know them (unwind/mapping_list.c), before it stores any
 * frame in them, so none is missing and one that is closed later is still known. Nobody waits for anybody. */
#ifndef MALLOSCOPE_CORE_MODULE_TABLE_H
#define MALLOSCOPE_CORE_MODULE_TABLE_H

#include "core/arena.h"
#include "platform/maps.h"

void module_table_start(struct recording *recording);

/* Makes sure that a module is in the recording. Returns the number by which frames name it, or
 * MODULE_BY_ADDRESS where they are to be plain addresses: it stays where it is, or is no file. Or
 * MODULE_NOT_NOTED: there was no room, which is counted. */
#define MODULE_BY_ADDRESS (UINT32_MAX - 1)
#define MODULE_NOT_NOTED  UINT32_MAX
uint32_t module_table_note(struct recording *recording, const struct mapped_code *code, uint64_t now);

/* The recording of a forked child begins with the modules that its parent had at the fork, under the same
 * numbers. False: there is no room for them. Frames would then name other modules than they mean. */
bool module_table_inherit(struct recording *child, const struct recording *parent);

#endif
