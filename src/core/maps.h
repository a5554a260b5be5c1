/* Reads /proc/self/maps inside the profiled program: plain system calls, no allocation, a buffer of the
 * caller's. */
#ifndef MALLOSCOPE_CORE_MAPS_H
#define MALLOSCOPE_CORE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_line {
    uint64_t start, end, offset, inode;
    uint32_t device_major, device_minor;
    bool executable;
    const char *path; /* not terminated */
    size_t path_length;
};

/* Calls `visit` for every mapping until it returns false. Returns 0 or a negative errno. A line must fit
 * `buffer`. */
int maps_read(
    char *buffer, size_t size, bool (*visit)(void *context, const struct map_line *line), void *context);

#endif
