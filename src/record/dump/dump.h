/* Dumps: what is recorded so far, written to a file from inside the program. `malloscope dump PID` does the
 * same from outside and costs the program nothing; this is for programs that say themselves when.
 *
 * The recording is only read, never changed, so a dump can be made at any moment: in a signal handler that
 * interrupts the recorder, or while other threads go on allocating. */
#ifndef MALLOSCOPE_RECORD_DUMP_DUMP_H
#define MALLOSCOPE_RECORD_DUMP_DUMP_H

#include "core/arena.h"
#include "record/dump/dump_file.h"

enum dump_format { DUMP_RECORDING, DUMP_HEAP };

/* Writes a dump to where `pattern` says (options_path). A file that is there is not overwritten: if the name
 * counts (%n), or `counted` is not NULL, other names are tried, from number `*counted` on. Returns 0 or a
 * negative errno, -ECANCELED if this process does not record. */
int dump_write(const char *pattern, enum dump_format format, _Atomic unsigned *counted);

/* The two formats. The file has been started. */
int dump_recording_write(struct dump_file *file, struct recording *recording, uint64_t now);
int dump_heap_write(struct dump_file *file, struct recording *recording);

#endif
