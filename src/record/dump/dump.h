/* Dumps: what is recorded so far, written to a file by the program itself. They are for programs that know the
 * moment of interest; `malloscope dump PID` makes one from outside, at no cost to the program.
 *
 * A dump reads the recording and changes nothing in it. So it can be made at any moment: in a signal handler
 * that interrupted the recorder, or while other threads go on allocating. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_H

#include "core/arena.h"
#include "record/dump/dump_file.h"

enum dump_format { DUMP_RECORDING, DUMP_HEAP };

/* Writes a dump to the path that `pattern` gives (options_path). A file that exists is not overwritten. If the
 * pattern counts (%n), or `counted` is not NULL, other names are tried, from number `*counted` on. Returns 0 or
 * a negative errno; -ECANCELED: this process does not record. May change errno. */
int dump_write(const char *pattern, enum dump_format format, _Atomic unsigned *counted);

/* The two formats, for a file that dump_file_start has started. Return 0 or a negative errno. */
int dump_recording_write(struct dump_file *file, struct recording *recording, uint64_t now);
int dump_heap_write(struct dump_file *file, struct recording *recording);

#endif
