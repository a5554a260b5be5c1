#include "format/utf8.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_length(const char *text) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length;
    uint32_t code;

    if (bytes[0] < 0x80) return 1;
    if ((bytes[0] & 0xe0) == 0xc0) {
        length = 2;
        code = bytes[0] & 0x1f;
    } else if ((bytes[0] & 0xf0) == 0xe0) {
        length = 3;
        code = bytes[0] & 0x0f;
    } else if ((bytes[0] & 0xf8) == 0xf0) {
        length = 4;
        code = bytes[0] & 0x07;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    return length;
}

size_t utf8_control_length(const char *text) {
    const unsigned char *bytes = (const unsigned char *)text;
    if ((bytes[0] < 0x20 && bytes[0]) || bytes[0] == 0x7f) return 1;
    return bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] < 0xa0 ? 2 : 0;
}

char *utf8_clean_copy(const char *text) {
    const size_t replacement_size = strlen(UTF8_REPLACEMENT);
    char *copy = memory_allocate(strlen(text) * replacement_size + 1);
    char *end = copy;
    while (*text) {
        size_t length = utf8_length(text);
        if (length) {
            end = mempcpy(end, text, length);
            text += length;
        } else {
            end = mempcpy(end, UTF8_REPLACEMENT, replacement_size);
            text++;
        }
    }
    *end = '\0';
    return copy;
}
