#include "record/dump/dump_text.h"

#include <string.h>

static void flush(struct dump_file *file) {
    if (file->error == 0) file->error = dump_file_put(file, file->written, file->buffer, file->filled);
    file->written += file->filled;
    file->filled = 0;
}

void dump_text_bytes(struct dump_file *file, const void *bytes, size_t size) {
    while (size) {
        if (file->filled == sizeof file->buffer) flush(file);
        size_t part = sizeof file->buffer - file->filled;
        if (part > size) part = size;
        memcpy(file->buffer + file->filled, bytes, part);
        file->filled += part;
        bytes = (const char *)bytes + part;
        size -= part;
    }
}

void dump_text(struct dump_file *file, const char *text) {
    dump_text_bytes(file, text, strlen(text));
}

static void put_number(struct dump_file *file, uint64_t number, unsigned base, size_t digits_least) {
    char digits[20];
    size_t length = 0;
    do digits[sizeof digits - ++length] = "0123456789abcdef"[number % base];
    while ((number /= base) || length < digits_least);
    dump_text_bytes(file, digits + sizeof digits - length, length);
}

void dump_text_decimal(struct dump_file *file, uint64_t number) {
    put_number(file, number, 10, 1);
}

void dump_text_hex(struct dump_file *file, uint64_t number, int digits_least) {
    put_number(file, number, 16, (size_t)digits_least);
}

int dump_text_end(struct dump_file *file) {
    flush(file);
    return file->error;
}
