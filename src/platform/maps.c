#include "platform/maps.h"

#include "platform/calls.h"

#include <string.h>

bool maps_open(struct maps_reader *reader) {
    int file = call_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return false;
    reader->file_plus_one = file + 1;
    reader->next = reader->filled = 0;
    reader->error = 0;
    reader->is_cut = false;
    return true;
}

void maps_close(struct maps_reader *reader) {
    int file_plus_one = reader->file_plus_one;
    reader->file_plus_one = 0;
    if (file_plus_one) call_close(file_plus_one - 1);
}

/* Reads on behind what is there. False at the end. */
static bool maps_fill(struct maps_reader *reader) {
    uint32_t rest = reader->filled - reader->next;
    memmove(reader->text, reader->text + reader->next, rest);
    reader->next = 0;
    reader->filled = rest;
    long size = call_read(reader->file_plus_one - 1, reader->text + rest, sizeof reader->text - rest);
    if (size < 0) reader->error = (int)-size;
    if (size <= 0) return false;
    reader->filled += (uint32_t)size;
    return true;
}

/* The next line, zero-terminated in place; NULL at the end. */
static char *maps_text(struct maps_reader *reader) {
    for (;;) {
        char *line = reader->text + reader->next, *end = memchr(line, '\n', reader->filled - reader->next);
        if (end) {
            *end = '\0';
            reader->next = (uint32_t)(end + 1 - reader->text);
            if (!reader->is_cut) return line;
            reader->is_cut = false;
            continue;
        }
        if (reader->filled - reader->next == sizeof reader->text && !reader->is_cut) {
            reader->text[sizeof reader->text - 1] = '\0';
            reader->next = reader->filled;
            reader->is_cut = true;
            return line;
        }
        if (reader->is_cut) reader->next = reader->filled;
        if (!maps_fill(reader)) return NULL;
    }
}

static unsigned digit_of(char c) {
    return c <= '9' ? (unsigned)c - '0' : (unsigned)c - 'a' + 10;
}

/* The number at `*at`, which goes on behind the character after it. */
static uint64_t maps_number(const char **at, unsigned base) {
    uint64_t number = 0;
    for (unsigned digit; (digit = digit_of(**at)) < base; ++*at) number = number * base + digit;
    if (**at) ++*at;
    return number;
}

/* "start-end rwxp offset major:minor inode      path" */
bool maps_next(struct maps_reader *reader, struct maps_line *ret_line) {
    const char *at = maps_text(reader);
    if (!at) return false;
    ret_line->start = maps_number(&at, 16);
    ret_line->end = maps_number(&at, 16);
    if (strnlen(at, 5) < 5) return false;
    ret_line->readable = at[0] == 'r';
    ret_line->writable = at[1] == 'w';
    ret_line->executable = at[2] == 'x';
    ret_line->shared = at[3] == 's';
    at += 5;
    ret_line->file_offset = maps_number(&at, 16);
    ret_line->device = maps_number(&at, 16) << 32;
    ret_line->device |= maps_number(&at, 16);
    ret_line->inode = maps_number(&at, 10);
    while (*at == ' ') at++;
    ret_line->path = at;
    ret_line->vdso = strcmp(at, "[vdso]") == 0;
    return ret_line->start < ret_line->end;
}
