/* One executable mapping and where its unwind information lies. */
#ifndef MALLOSCOPE_UNWIND_MAPPING_H
#define MALLOSCOPE_UNWIND_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/safe_read.h"

/* All fields are words: mapping_list.c copies them one by one, each atomically, while another thread may write them. */
struct mapping {
    uint64_t start, end; /* addresses of the executable mapping */
    uint64_t base;       /* where the file's first page is mapped; 0 = not a file, no unwind information */
    uint64_t device, inode, file_offset;
    uint64_t data_low, data_high; /* the loaded segment that holds the unwind information */
    uint64_t header;              /* address of .eh_frame_hdr in it; 0 = none */
    uint64_t header_size;
    uint64_t identity;    /* hash of the header's first bytes: tells that another file has taken the place */
    uint64_t fingerprint; /* hash of the file's first page, for the same purpose; 0 if permanent */
    uint64_t permanent;   /* 1 = is never unmapped: may be read directly */
    uint64_t number;      /* of the module by which frames name it: what unwind_note returned */
    uint64_t unread;      /* 1 = could not be read, since a thread was opening or closing it: try again */
    /* How to read it if it is mapped into another process; NULL in the process itself. */
    bool (*reader)(const struct mapping *mapping, void *target, uint64_t address, uint64_t size);
};

/* Finds the unwind information of a mapping whose addresses, `base` and `permanent` are known. `page` is room for a
 * copy of the file's first page. */
void mapping_read_headers(struct mapping *mapping, uint8_t page[PAGE_SIZE_MIN]);

/* Whether the file's first page still has its fingerprint. False if it cannot be read. `page` is room for a copy. */
bool mapping_is_there(const struct mapping *mapping, uint8_t page[PAGE_SIZE_MIN]);

/* Copies memory of the segment that holds the unwind information. False if it lies outside or is unmapped. */
bool mapping_copy(const struct mapping *mapping, void *target, uint64_t address, uint64_t size);

/* Copies code at any address of the mapping's process. `mapping` NULL: of this process. */
bool mapping_copy_code(const struct mapping *mapping, void *target, uint64_t address, uint64_t size);

/* Copies the first bytes of .eh_frame_hdr. If its segment ends before, the rest is zero. */
#define MAPPING_IDENTITY_SIZE 64
bool mapping_copy_header(const struct mapping *mapping, uint8_t target[MAPPING_IDENTITY_SIZE]);
uint64_t mapping_identity(const uint8_t bytes[MAPPING_IDENTITY_SIZE]);

#endif
