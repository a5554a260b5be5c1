/* The modules: which files' code the recorded addresses lie in.
 *
 * They are noted when a new stack holds an address that no known module covers, so a library that is closed
 * later is still known. One thread at a time reads the maps; others go on without waiting. */
#ifndef MALLOSCOPE_CORE_MODULES_H
#define MALLOSCOPE_CORE_MODULES_H

#include "core/arena.h"

void modules_start(struct recording *recording);

/* Makes sure that the modules of these return addresses are in the recording. */
void modules_cover(struct recording *recording, const uint64_t *frames, uint32_t count, uint64_t now);

/* After fork: whoever was reading the maps is not there any more. */
void modules_after_fork(void);

#endif
