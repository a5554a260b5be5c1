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

uint32_t utf8_code(const char *text) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = utf8_length(text);
    uint32_t code = length <= 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) code = code << 6 | (bytes[i] & 0x3f);
    return code;
}

size_t utf8_control_length(const char *text) {
    static const uint32_t ranges[][2] = {{0x01, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c},
        {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};
    unsigned char first = (unsigned char)*text;
    if (first >= 0x20 && first < 0x7f) return 0;
    size_t length = utf8_length(text);
    uint32_t code = utf8_code(text);
    for (size_t i = 0; length && i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return length;
    return 0;
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
