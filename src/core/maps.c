#include "core/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *read_hex(const char *at, uint64_t *ret) {
    uint64_t value = 0;
    for (;; at++) {
        unsigned digit = (unsigned)*at - '0', letter = ((unsigned)*at | 32) - 'a';
        if (digit < 10)
            value = value << 4 | digit;
        else if (letter < 6)
            value = value << 4 | (letter + 10);
        else
            break;
    }
    *ret = value;
    return at;
}

static const char *read_decimal(const char *at, uint64_t *ret) {
    uint64_t value = 0;
    for (; (unsigned)*at - '0' < 10; at++) value = value * 10 + (unsigned)(*at - '0');
    *ret = value;
    return at;
}

/* "55e0-55f0 r-xp 00001000 fe:00 1234      /usr/bin/x"; the kernel's format, so no more checks than needed.
 */
static void parse(const char *at, const char *end, struct map_line *line) {
    uint64_t major, minor;
    at = read_hex(at, &line->start) + 1;
    at = read_hex(at, &line->end) + 1;
    line->executable = at[2] == 'x';
    at = read_hex(at + 5, &line->offset) + 1;
    at = read_hex(at, &major) + 1;
    at = read_hex(at, &minor) + 1;
    at = read_decimal(at, &line->inode);
    line->device_major = (uint32_t)major;
    line->device_minor = (uint32_t)minor;
    while (at < end && *at == ' ') at++;
    line->path = at;
    line->path_length = (size_t)(end - at);
}

int maps_read(
    char *buffer, size_t size, bool (*visit)(void *context, const struct map_line *line), void *context) {
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return -errno;
    size_t filled = 0;
    int r = 0;
    for (bool more = true; more;) {
        ssize_t got = read(file, buffer + filled, size - filled);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            r = got < 0 ? -errno : 0;
            break;
        }
        filled += (size_t)got;
        char *at = buffer, *newline;
        while (more && (newline = memchr(at, '\n', filled - (size_t)(at - buffer)))) {
            struct map_line line;
            parse(at, newline, &line);
            more = visit(context, &line);
            at = newline + 1;
        }
        filled -= (size_t)(at - buffer);
        memmove(buffer, at, filled);
        if (filled == size) filled = 0; /* a line longer than the buffer is left out */
    }
    close(file);
    return r;
}
