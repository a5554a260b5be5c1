/* The lines of /proc/self/maps, read with plain system calls into a buffer of the caller's. */
#ifndef MALLOSCOPE_PLATFORM_MAPS_H
#define MALLOSCOPE_PLATFORM_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_reader {
    int file_plus_one;     /* 0 = not open */
    bool failed;           /* what was read is not all */
    uint32_t next, filled; /* within `text` */
    char text[8192];       /* holds a line: the kernel shows no path of more than a page */
};

struct maps_line {
    uint64_t start, end, file_offset, inode;
    uint64_t device; /* major << 32 | minor */
    bool readable, executable, vdso;
    const char *path; /* in the reader, good until the next line */
};

/* A mapping that holds code, and what is known of the file behind it. */
struct mapped_code {
    const struct maps_line *line;
    uint64_t base;        /* where the file's first page is mapped; 0 = it is not, or there is no file */
    uint64_t fingerprint; /* of that page; 0 = not known */
    bool permanent;       /* is never unmapped */
};

bool maps_open(struct maps_reader *reader);
/* False at the end or on failure. */
bool maps_next(struct maps_reader *reader, struct maps_line *ret_line);
/* Does nothing if it is not open. */
void maps_close(struct maps_reader *reader);

#endif
