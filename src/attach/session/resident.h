/* How much memory a process has, as the kernel tells. `attach --via smaps` asks again and again where probes are
 * not possible: such a recording has a timeline and no stacks. */
#ifndef MALLOSCOPE_ATTACH_SESSION_RESIDENT_H
#define MALLOSCOPE_ATTACH_SESSION_RESIDENT_H

#include "attach/session/collector.h"

/* The resident memory that belongs to no file: the heap, the stacks, and anonymous mappings. False if the process
 * has ended or may not be inspected. */
bool resident_anonymous(int pid, uint64_t *ret_bytes);

#endif
