/* The start of recording in a process. */
#ifndef MALLOSCOPE_RECORD_LIFE_START_H
#define MALLOSCOPE_RECORD_LIFE_START_H

#include "core/recording.h"
#include "record/life/options.h"

/* NOT_STARTED to RECORDING, DORMANT or OFF. */
void start_by_environment(void);

/* The same because the program wants it, by these options, and also from DORMANT. Returns 0, or a negative
 * errno if all is as before. -EALREADY: it was begun before. */
int start_by_program(const struct options *options);

/* A recording for this process, which `parent`'s process has forked. Returns 0 or a negative errno. */
int start_in_child(const struct recording_header *parent);

#endif
