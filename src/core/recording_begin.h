/* The beginning of a recording, by whoever writes it: the recorder in the program, or a collector that looks
 * at the program from outside. */
#ifndef MALLOSCOPE_CORE_RECORDING_BEGIN_H
#define MALLOSCOPE_CORE_RECORDING_BEGIN_H

#include "core/arena.h"

struct recording_setup {
    int32_t pid, parent_pid;
    int32_t writer; /* the process that writes, if it is not `pid`; else 0 */
    uint32_t machine;
    uint32_t filter; /* enum free_filter */
    uint32_t depth;
    uint64_t rate, seed;
    uint64_t start_monotonic, start_realtime;
};

/* Makes the tables of a new recording. False if there is no room for them. */
bool recording_begin(struct recording *recording, const struct recording_setup *setup);

/* All that is known at the beginning has been noted: from now on the file is a recording. */
void recording_begin_publish(struct recording *recording);

#endif
