/* The thread table: the threads of the recorded program, and the state of their samplers.
 *
 * A thread gets a record when its first allocation comes to the sampler. When a thread has ended, another thread
 * may take its record: at once if the ended thread never had a sample, otherwise only when there are many records.
 * What the ended thread allocated is then added to header.orphan_bytes. */
#ifndef MALLOSCOPE_CORE_THREAD_TABLE_H
#define MALLOSCOPE_CORE_THREAD_TABLE_H

#include "core/arena.h"

void thread_table_start(struct recording *recording);

/* Gives the calling thread a record. Returns its number, or UINT32_MAX if there is no room. */
uint32_t thread_table_register(struct recording *recording, int32_t tid, uint64_t now);
struct thread_record *thread_table_get(struct recording *recording, uint32_t thread);

/* The thread that owns the record ends. record->bytes must be final. */
void thread_table_end(struct recording *recording, struct thread_record *record, uint64_t now);

#endif
