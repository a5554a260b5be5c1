/* The lines of /proc/self/maps, read with plain system calls into a buffer of the caller's. */
#ifndef MALLOSCOPE_UNWIND_MAPS_H
#define MALLOSCOPE_UNWIND_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_reader {
    int file_plus_one;     /* 0 = not open */
    bool failed;           /* what was read is not all */
    uint32_t next, filled; /* within `text` */
    char text[8192];
};

struct maps_line {
    uint64_t start, end, file_offset, device, inode;
    bool readable, executable, vdso;
};

bool maps_open(struct maps_reader *reader);
/* False at the end or on failure. */
bool maps_next(struct maps_reader *reader, struct maps_line *ret_line);
/* Does nothing if it is not open. */
void maps_close(struct maps_reader *reader);

#endif
