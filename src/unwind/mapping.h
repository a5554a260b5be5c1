/* One executable mapping and where its unwind information lies. */
#ifndef MALLOSCOPE_UNWIND_MAPPING_H
#define MALLOSCOPE_UNWIND_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/safe_read.h"

/* All fields are words: a reader copies them one by one while they may be changing. */
struct mapping {
    uint64_t start, end; /* the executable mapping */
    uint64_t base;       /* where the file's first page is mapped; 0 = not a file, no unwind information */
    uint64_t device, inode, file_offset;
    uint64_t data_low, data_high; /* the loaded segment that holds the unwind information */
    uint64_t header;              /* .eh_frame_hdr in it; 0 = none */
    uint64_t header_size;
    uint64_t identity; /* of the header's first bytes, to notice that another mapping has taken the place */
    uint64_t fingerprint; /* of the file's first page, for the same; not of permanent ones */
    uint64_t permanent;   /* 1 = cannot be unloaded: may be read directly */
    uint64_t number;      /* by which frames name it: what the unwind_note said of it */
    uint64_t unread; /* 1 = could not be read (it was being opened or closed): nothing is known of it yet */
    /* How to read it where it is mapped into another process; NULL in the process itself. */
    bool (*reader)(const struct mapping *mapping, void *target, uint64_t address, uint64_t size);
};

/* Finds the unwind information of a mapping of which the mapping and `permanent` are known. `page` is
 * for a copy of the file's first page. */
void mapping_read_headers(struct mapping *mapping, uint8_t page[PAGE_SIZE_MIN]);

/* Whether the file's first page still is what it was. False if it cannot be read. */
bool mapping_is_there(const struct mapping *mapping, uint8_t page[PAGE_SIZE_MIN]);

/* Copies memory of the mapping's data segment. False if it lies outside or is gone. */
bool mapping_copy(const struct mapping *mapping, void *target, uint64_t address, uint64_t size);
/* Copies code of the mapping, or near it. NULL = of this process. */
bool mapping_copy_code(const struct mapping *mapping, void *target, uint64_t address, uint64_t size);

/* Copies the first bytes of .eh_frame_hdr, zeroes after the end of its segment. */
#define MAPPING_IDENTITY_SIZE 64
bool mapping_copy_header(const struct mapping *mapping, uint8_t target[MAPPING_IDENTITY_SIZE]);
uint64_t mapping_identity(const uint8_t bytes[MAPPING_IDENTITY_SIZE]);

#endif
