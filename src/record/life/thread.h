/* The life of a thread: from its first allocation that the recorder is asked about to its end it has a record in
 * the recording (core/thread_table.h). */
#ifndef MALLOSCOPE_RECORD_LIFE_THREAD_H
#define MALLOSCOPE_RECORD_LIFE_THREAD_H

#include "core/recording.h"

#include <stdbool.h>
#include <stddef.h>

/* To be called once, when recording begins: from then on the ends of threads are noticed. */
void thread_start(void);

/* Seeds random numbers for the calling thread. */
void thread_seed(uint64_t random[4]);

/* Gives the calling thread a record. False: there is no room for one, and the `size` bytes that the thread is
 * about to allocate are added to the recording's orphan_bytes. */
bool thread_begin(size_t size);

/* Adds to the calling thread's record what it has allocated since its last draw. */
void thread_flush(struct thread_record *record);

/* Writes the calling thread's name into its record. */
void thread_note_name(struct thread_record *record);

#endif
