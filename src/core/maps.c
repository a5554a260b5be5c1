#include "core/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/system.h"

bool maps_open(struct maps_reader *reader) {
    uint64_t path = (uint64_t) "/proc/self/maps";
    long file = system_call(SYS_openat, (uint64_t)AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0) return false;
    reader->file_plus_one = (int)file + 1;
    reader->next = reader->filled = 0;
    reader->failed = false;
    return true;
}

void maps_close(struct maps_reader *reader) {
    int file_plus_one = reader->file_plus_one;
    reader->file_plus_one = 0;
    if (file_plus_one) system_call(SYS_close, (uint64_t)file_plus_one - 1, 0, 0, 0, 0, 0);
}

/* The next character, -1 at the end. */
static int maps_character(struct maps_reader *reader) {
    if (reader->next == reader->filled) {
        long size;
        do
            size = system_call(SYS_read, (uint64_t)reader->file_plus_one - 1, (uint64_t)reader->text,
                sizeof reader->text, 0, 0, 0);
        while (size == -EINTR);
        if (size < 0) reader->failed = true;
        if (size <= 0) return -1;
        reader->next = 0;
        reader->filled = (uint32_t)size;
    }
    return (unsigned char)reader->text[reader->next++];
}

/* A number and the character after it, which is consumed. */
static uint64_t maps_number(struct maps_reader *reader, unsigned base, int *ret_after) {
    uint64_t number = 0;
    for (;;) {
        int c = maps_character(reader);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : base;
        if (digit >= base) {
            *ret_after = c;
            return number;
        }
        number = number * base + digit;
    }
}

/* "start-end rwxp offset major:minor inode      path" */
bool maps_next(struct maps_reader *reader, struct maps_line *ret_line) {
    int c;
    ret_line->start = maps_number(reader, 16, &c);
    if (c != '-') return false;
    ret_line->end = maps_number(reader, 16, &c);
    ret_line->readable = maps_character(reader) == 'r';
    maps_character(reader);
    ret_line->executable = maps_character(reader) == 'x';
    maps_character(reader);
    maps_character(reader);
    ret_line->file_offset = maps_number(reader, 16, &c);
    ret_line->device = maps_number(reader, 16, &c) << 32;
    ret_line->device |= maps_number(reader, 16, &c);
    ret_line->inode = maps_number(reader, 10, &c);
    while (c == ' ') c = maps_character(reader);

    size_t length = 0;
    for (; c != '\n' && c != -1; c = maps_character(reader))
        if (length < sizeof reader->path - 1) reader->path[length++] = (char)c;
    reader->path[length] = '\0';
    ret_line->path = reader->path;
    ret_line->vdso = strcmp(reader->path, "[vdso]") == 0;
    return c == '\n' && ret_line->start < ret_line->end;
}
