/* Threads in the recording: each has a record while it runs. */
#ifndef MALLOSCOPE_RECORD_LIFE_THREAD_H
#define MALLOSCOPE_RECORD_LIFE_THREAD_H

#include "record/sample/recorder_state.h"

#include <stdbool.h>
#include <stddef.h>

/* When recording begins: from now on a thread's end is noticed. */
void thread_start(void);

/* Gives the calling thread a record. False: there is no room, and `size` bytes are nobody's. */
bool thread_begin(size_t size);

/* Makes sure that the calling thread has a record. */
static inline bool thread_is_known(void) {
    return recorder_thread || thread_begin(0);
}

/* Moves the calling thread's countdown into its record. */
void thread_flush(struct thread_record *record);
void thread_note_name(struct thread_record *record);

#endif
