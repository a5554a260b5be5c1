/* The name table: names that the program gives to its scopes, types, threads and heaps, and the file names of code
 * objects. Each name is copied once and has a number. So frames and records hold no text, and the program may free
 * its own. No thread waits for another. */
#ifndef MALLOSCOPE_CORE_NAME_TABLE_H
#define MALLOSCOPE_CORE_NAME_TABLE_H

#include "core/arena.h"

#define NAME_NONE   0u
#define NAME_LENGTH 1000u /* longer names are cut, and end in "..." */

bool name_table_start(struct recording *recording);

/* The number of a name. NAME_NONE if the name is empty, or if there is no room, which is counted as DROP_NAME. */
uint32_t name_table_note(struct recording *recording, const char *name);

/* Copies the parent's names at the fork into the recording of a forked child, under the same numbers. False if
 * there is no room. */
bool name_table_inherit(struct recording *child, const struct recording *parent);

#endif
