/* Where nothing can be seen of single allocations: how much memory a process has, asked of the kernel over
 * and over. The recording has a timeline and no stacks. */
#ifndef MALLOSCOPE_ATTACH_SESSION_RESIDENT_H
#define MALLOSCOPE_ATTACH_SESSION_RESIDENT_H

#include "attach/session/collector.h"

/* Private memory that no file is behind: the heap, the stacks, and what was mapped by hand. Returns false
 * when the process is gone, or may not be looked at. */
bool resident_anonymous(int pid, uint64_t *ret_bytes);

#endif
