/* A forward reader of a mapping's bytes through a small window. It never faults: what cannot be read reads as
 * zero and sets `failed`. */
#ifndef MALLOSCOPE_UNWIND_CURSOR_H
#define MALLOSCOPE_UNWIND_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/mapping.h"

struct cursor {
    const struct mapping *mapping;
    uint64_t address, end;
    uint64_t window; /* address of bytes[0] */
    uint8_t *bytes;
    uint16_t capacity, filled;
    bool failed;
};

/* `bytes` is the window, of `capacity` bytes. */
void cursor_begin(struct cursor *cursor, const struct mapping *mapping, uint64_t address, uint8_t *bytes,
    uint16_t capacity);

uint8_t cursor_byte(struct cursor *cursor);
uint64_t cursor_fixed(struct cursor *cursor, unsigned size); /* little endian */
uint64_t cursor_unsigned(struct cursor *cursor);             /* LEB128 */
int64_t cursor_signed(struct cursor *cursor);
/* A pointer in one of the DW_EH_PE encodings that are relative to nothing or to their own place. */
uint64_t cursor_pointer(struct cursor *cursor, uint8_t encoding);
void cursor_skip(struct cursor *cursor, uint64_t size);

#endif
