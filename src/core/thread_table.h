/* The threads of the recorded program. A record is given out when a thread is first asked about by the
 * sampler, and taken again for another thread once its owner has ended: those that never had a sample at
 * once, the others when many have gathered. What they allocated then goes into the header's orphan_bytes. */
#ifndef MALLOSCOPE_CORE_THREAD_TABLE_H
#define MALLOSCOPE_CORE_THREAD_TABLE_H

#include "core/arena.h"

void thread_table_start(struct recording *recording);

/* The number of a fresh record for the calling thread, or UINT32_MAX when there is no room. */
uint32_t thread_table_register(struct recording *recording, int32_t tid, uint64_t now);
struct thread_record *thread_table_get(struct recording *recording, uint32_t thread);

/* The owner ends. Its `bytes` must be final. */
void thread_table_end(struct recording *recording, struct thread_record *record, uint64_t now);

#endif
