/* Threads in the recording: each has a record while it runs. */
#ifndef MALLOSCOPE_RECORD_LIFE_THREAD_H
#define MALLOSCOPE_RECORD_LIFE_THREAD_H

#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>

/* When recording begins: from now on a thread's end is noticed. */
void thread_start(void);

/* Gives the calling thread a record. False: there is no room, and `size` bytes are nobody's. */
bool thread_begin(size_t size);

/* Moves the calling thread's countdown into its record. */
void thread_flush(struct thread_record *record);
void thread_note_name(struct thread_record *record);

#endif
