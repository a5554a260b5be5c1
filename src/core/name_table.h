/* Names that the program gives: of its scopes, types, threads and heaps. Each is kept once and known by a
 * number, so that frames and records hold no text and the program may forget its own. Nobody waits for
 * anybody. */
#ifndef MALLOSCOPE_CORE_NAME_TABLE_H
#define MALLOSCOPE_CORE_NAME_TABLE_H

#include "core/arena.h"

#define NAME_NONE   0u
#define NAME_LENGTH 1000u /* longer ones are cut, and end in "..." */

bool name_table_start(struct recording *recording);

/* The number of a name; NAME_NONE for an empty one, or where there is no room, which is counted. */
uint32_t name_table_note(struct recording *recording, const char *name);

/* The recording of a forked child begins with the names that its parent had at the fork, under the same
 * numbers. False: there is no room for them. */
bool name_table_inherit(struct recording *child, const struct recording *parent);

#endif
