/* Dumps that the user has asked for at the start: at exit, on a signal, every so many bytes or seconds.
 *
 * There is no thread for that. What is due by bytes or time is written by the thread whose sample finds it
 * due, so a program that does not allocate does not dump; what a signal asks for, by the thread that gets
 * the signal. Of those never two at once: the second is left out. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_TRIGGERS_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_TRIGGERS_H

#include "core/events.h"

#include <stdbool.h>
#include <stdint.h>

struct options;

/* The recording has begun. No signal is taken unless the options name one, and none that the program has a
 * handler for already; one that it installs later takes our place. */
void dump_triggers_start(const struct options *options);

/* Whether samples are to be told: something is to be written every so often. */
extern bool dump_triggers_want_samples;
__attribute__((noinline)) void dump_triggers_note(struct sample sample);

/* The most that is live at once from now on, weighted; 0 while nobody has asked. */
void dump_triggers_watch_peak(void);
uint64_t dump_triggers_peak(void);

/* The process, or its recording, ends. */
void dump_triggers_at_exit(void);

#endif
