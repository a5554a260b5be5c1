/* Buffers for stack capture: the thread's own stack may be too small to hold one (a signal handler's, for
 * instance). A bounded pool; taking one is one exchange, and when all are taken the sample is dropped. */
#ifndef MALLOSCOPE_RECORD_SAMPLE_CAPTURE_BUFFERS_H
#define MALLOSCOPE_RECORD_SAMPLE_CAPTURE_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

bool capture_buffers_start(uint32_t words);
/* For the thread of that number, which has come down to `sp`. NULL when there is none. */
uint64_t *capture_buffers_take(uint32_t thread, uint64_t sp, uint32_t *ret_number);
void capture_buffers_give(uint32_t number);
void capture_buffers_after_fork(void);

#endif
