/* Reads the bytes of a mapping's unwind information one after the other, through a small window that is copied. It
 * never faults: a byte that cannot be read reads as 0 and sets `failed`, which stays set. */
#ifndef MALLOSCOPE_UNWIND_CURSOR_H
#define MALLOSCOPE_UNWIND_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/mapping.h"

struct cursor {
    const struct mapping *mapping;
    uint64_t address, end; /* the next byte, and where reading fails */
    uint64_t window;       /* address of bytes[0] */
    uint8_t *bytes;
    uint16_t capacity, filled; /* of `bytes` */
    bool failed;
};

/* Starts at `address`; the end is that of the mapping's data segment. `bytes` is the window, of `capacity` bytes. */
void cursor_begin(struct cursor *cursor, const struct mapping *mapping, uint64_t address, uint8_t *bytes,
    uint16_t capacity);

uint8_t cursor_byte(struct cursor *cursor);
uint64_t cursor_fixed(struct cursor *cursor, unsigned size); /* little endian */
uint64_t cursor_unsigned(struct cursor *cursor);             /* LEB128 */
int64_t cursor_signed(struct cursor *cursor);
/* A pointer in a DW_EH_PE encoding. Absolute and pc-relative ones are known; others set `failed`. */
uint64_t cursor_pointer(struct cursor *cursor, uint8_t encoding);
void cursor_skip(struct cursor *cursor, uint64_t size);

#endif
