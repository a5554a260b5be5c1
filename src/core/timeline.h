/* The timeline: the heap's size over the whole run in a fixed number of buckets (struct timeline,
 * recording.h). */
#ifndef MALLOSCOPE_CORE_TIMELINE_H
#define MALLOSCOPE_CORE_TIMELINE_H

#include "core/arena.h"

bool timeline_start(struct recording *recording);

/* At `now`, the heap holds `live`, and `allocated` has just been added to it (both BYTE_ONE). */
void timeline_note(struct recording *recording, uint64_t now, uint64_t live, uint64_t allocated);

#endif
