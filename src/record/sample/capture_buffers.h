/* Buffers into which stack capture writes frames.
 *
 * A buffer cannot lie on the captured thread's own stack, which may be too small for it (a signal handler's, for
 * instance). There is a fixed number of buffers for all threads. To take one is one compare-and-swap. When all
 * are taken, the sample is dropped and counted as DROP_SCRATCH. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_CAPTURE_BUFFERS_H
#define MALLOSCOPE_RECORD_SAMPLE_CAPTURE_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the buffers, of `words` words each. No thread may be using a buffer. False: there is no memory. */
bool capture_buffers_start(uint32_t words);

/* A buffer for the thread whose record has number `thread` and whose stack pointer is `sp`. NULL: all are in use.
 * The caller gives it back by `*ret_number`. */
uint64_t *capture_buffers_take(uint32_t thread, uint64_t sp, uint32_t *ret_number);
void capture_buffers_give(uint32_t number);

/* To be called in a forked child: gives back the buffers of threads that exist only in the parent. */
void capture_buffers_after_fork(void);

#endif
