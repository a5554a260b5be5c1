/* The lines of /proc/PID/maps, read with plain system calls into a buffer of the caller's. */
#ifndef MALLOSCOPE_PLATFORM_MAPS_H
#define MALLOSCOPE_PLATFORM_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_reader {
    int file_plus_one;     /* 0 = not open */
    int error;             /* the errno of a read that failed: what was read is not all; 0 = none has */
    uint32_t next, filled; /* within `text` */
    bool is_cut;           /* what follows in the file is the rest of a line that `text` could not hold */
    char text[8192]; /* a longer line is cut: the kernel writes each newline in a path as four characters */
};

struct maps_line {
    uint64_t start, end, file_offset, inode;
    uint64_t device; /* major << 32 | minor */
    bool readable, writable, executable, shared, vdso;
    const char *path; /* in the reader, good until the next line */
};

/* A mapping that holds code, and what is known of the file behind it. */
struct mapped_code {
    const struct maps_line *line;
    uint64_t base;        /* where the file's first page is mapped; 0 = it is not, or there is no file */
    uint64_t fingerprint; /* of that page; 0 = not known */
    bool permanent;       /* is never unmapped */
};

/* Those of this process. For another process the caller opens the file and sets `file_plus_one`. */
bool maps_open(struct maps_reader *reader);
/* False at the end or on failure. */
bool maps_next(struct maps_reader *reader, struct maps_line *ret_line);
/* Does nothing if it is not open. */
void maps_close(struct maps_reader *reader);

#endif
