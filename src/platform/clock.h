/* Time since the start of the recording, in nanoseconds.
 *
 * Asking the kernel's clock costs 20 to 45 ns, twice for each block in exact mode. So between two questions
 * the time is carried on by the processor's time stamp counter, whose speed is measured against the kernel's
 * clock: it is asked again when the time since the last question reaches an eighth of the time measured over,
 * and at least once a second. The error stays below the few hundred nanoseconds that the question itself
 * takes. */
#ifndef MALLOSCOPE_PLATFORM_CLOCK_H
#define MALLOSCOPE_PLATFORM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* What the kernel's clock says, in nanoseconds. Without a system call where the kernel's vDSO can tell. */
uint64_t clock_kernel(clockid_t clock);

/* The kernel's clock now is `start`: time 0. */
void clock_start(uint64_t start);
uint64_t clock_now(void);

/* The thread that was measuring is not in the child. */
void clock_after_fork(void);

#endif
