#include "unwind/cursor.h"

void cursor_begin(struct cursor *cursor, const struct mapping *mapping, uint64_t address, uint8_t *bytes,
    uint16_t capacity) {
    *cursor = (struct cursor){.mapping = mapping,
        .address = address,
        .end = mapping->data_high,
        .window = address,
        .bytes = bytes,
        .capacity = capacity};
}

static bool cursor_fill(struct cursor *cursor) {
    uint64_t size =
        cursor->address < cursor->mapping->data_high ? cursor->mapping->data_high - cursor->address : 0;
    if (size > cursor->capacity) size = cursor->capacity;
    cursor->filled = 0;
    if (size == 0 || !mapping_copy(cursor->mapping, cursor->bytes, cursor->address, size)) return false;
    cursor->window = cursor->address;
    cursor->filled = (uint16_t)size;
    return true;
}

uint8_t cursor_byte(struct cursor *cursor) {
    if (cursor->failed || cursor->address >= cursor->end ||
        (cursor->address - cursor->window >= cursor->filled && !cursor_fill(cursor))) {
        cursor->failed = true;
        return 0;
    }
    return cursor->bytes[cursor->address++ - cursor->window];
}

uint64_t cursor_fixed(struct cursor *cursor, unsigned size) {
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) value |= (uint64_t)cursor_byte(cursor) << (8 * i);
    return value;
}

uint64_t cursor_unsigned(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_byte(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    cursor->failed = true;
    return 0;
}

int64_t cursor_signed(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64;) {
        uint8_t byte = cursor_byte(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80) continue;
        if ((byte & 0x40) && shift < 64) value |= ~UINT64_C(0) << shift;
        return (int64_t)value;
    }
    cursor->failed = true;
    return 0;
}

uint64_t cursor_pointer(struct cursor *cursor, uint8_t encoding) {
    uint64_t place = cursor->address, value;
    switch (encoding & 0x0f) {
    case 0x00: /* absptr */
    case 0x04: /* udata8 */
    case 0x0c: /* sdata8 */
        value = cursor_fixed(cursor, 8);
        break;
    case 0x01:
        value = cursor_unsigned(cursor);
        break;
    case 0x02:
        value = cursor_fixed(cursor, 2);
        break;
    case 0x03:
        value = cursor_fixed(cursor, 4);
        break;
    case 0x09:
        value = (uint64_t)cursor_signed(cursor);
        break;
    case 0x0a:
        value = (uint64_t)(int64_t)(int16_t)cursor_fixed(cursor, 2);
        break;
    case 0x0b:
        value = (uint64_t)(int64_t)(int32_t)cursor_fixed(cursor, 4);
        break;
    default:
        cursor->failed = true;
        return 0;
    }
    switch (encoding & 0x70) {
    case 0x00:
        return value;
    case 0x10:
        return place + value; /* pcrel */
    default:
        cursor->failed = true;
        return 0;
    }
}

void cursor_skip(struct cursor *cursor, uint64_t size) {
    if (cursor->address > cursor->end || size > cursor->end - cursor->address)
        cursor->failed = true;
    else
        cursor->address += size;
}
