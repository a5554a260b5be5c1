/* Dumps that a program made of itself, in one folder with its recording or with each other: adding them up would
 * count the same allocations several times. */
#ifndef MALLOSCOPE_MODEL_DUPLICATE_DUMPS_H
#define MALLOSCOPE_MODEL_DUPLICATE_DUMPS_H

#include <stddef.h>

/* Leaves the dumps of a process out of a list of recordings if its own recording is in the list; without it, all
 * dumps but the latest. The paths that are left out are freed. Returns how many are left, in their former order.
 * Files that cannot be read stay in the list: opening them tells why. */
size_t duplicate_dumps_leave_out(char **paths, size_t count);

#endif
