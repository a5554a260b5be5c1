/* The beginning of a recording, whoever writes it: the recorder inside the program, or the collector of `attach`, which
 * records the program from outside. */
#ifndef MALLOSCOPE_CORE_RECORDING_BEGIN_H
#define MALLOSCOPE_CORE_RECORDING_BEGIN_H

#include "core/arena.h"

/* What is known when a recording begins. It goes into the header (recording.h). */
struct recording_setup {
    int32_t pid, parent_pid;
    int32_t writer; /* the process that writes, if it is not `pid`; else 0 */
    uint32_t machine;
    uint32_t filter; /* enum free_filter */
    uint32_t depth;
    uint64_t rate, seed;
    uint64_t start_monotonic, start_realtime;
};

/* Fills the header and makes the tables of a recording that arena_create has made. False if there is no room. */
bool recording_begin(struct recording *recording, const struct recording_setup *setup);

/* To be called when all that is known at the beginning has been noted. From now on readers accept the file as a
 * recording. */
void recording_begin_publish(struct recording *recording);

#endif
