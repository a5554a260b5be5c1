/* Dumps that the user asks for when the program is started: at exit, on a signal, every so many bytes or
 * seconds.
 *
 * No thread waits for these moments. A dump that is due by bytes or by time is written by the thread whose
 * sample finds it due; a program that does not allocate does not dump. A dump that a signal asks for is written
 * by the thread that gets the signal. While a dump is being written, others that become due are left out. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_TRIGGERS_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_TRIGGERS_H

#include "core/events.h"

#include <stdbool.h>
#include <stdint.h>

struct options;

/* To be called when the recording has begun. Takes no signal unless the options name one, and none that the
 * program has a handler for. If the program installs a handler later, that one replaces ours. */
void dump_triggers_start(const struct options *options);

/* Whether dump_triggers_note is to be called for every sample: a dump every so often, or the peak, is wanted. */
extern bool dump_triggers_want_samples;
__attribute__((noinline)) void dump_triggers_note(struct sample sample);

/* For mscope_watch_peak: the largest number of live bytes since the last call of dump_triggers_watch_peak, in
 * units of 1 / BYTE_ONE; 0 if it was never called. */
void dump_triggers_watch_peak(void);
uint64_t dump_triggers_peak(void);

/* To be called when the process, or its recording, ends. */
void dump_triggers_at_exit(void);

#endif
