/* Times as one number of nanoseconds, as recordings hold them. */
#ifndef MALLOSCOPE_BASE_NANOSECONDS_H
#define MALLOSCOPE_BASE_NANOSECONDS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t nanoseconds_of(struct timespec time) {
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t nanoseconds_now(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return nanoseconds_of(now);
}

#endif
