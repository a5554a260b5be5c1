/* The start of recording in a process: makes the file, sets the recorder up, and moves it to the stage RECORDING.
 *
 * Nothing here may fail loudly. If recording cannot start, the program that was named on the command line gets
 * one line on standard error, and runs on without being recorded. */
#ifndef MALLOSCOPE_RECORD_LIFE_START_H
#define MALLOSCOPE_RECORD_LIFE_START_H

#include "core/recording.h"
#include "record/life/options.h"

/* Starts as the environment says, from NOT_STARTED: the next stage is RECORDING, DORMANT or OFF. Does nothing in
 * any other stage. The stage stays NOT_STARTED while the allocator or the environment cannot be used yet: the
 * next allocation tries again. */
void start_by_environment(void);

/* Starts from DORMANT because the program asks for it, as `options` say. Recording begins inactive: mscope_start
 * switches it on. Returns 0; or a negative errno, and the stage is DORMANT again. -EALREADY: the stage was not
 * DORMANT. */
int start_by_program(const struct options *options);

/* Makes the recording of this process, a forked child whose parent's recording has the header `parent`. Returns 0
 * or a negative errno. */
int start_in_child(const struct recording_header *parent);

#endif
