/* The version of a file: whether it is still as it was when it was read before. */
#ifndef MALLOSCOPE_SYMBOL_FILE_VERSION_H
#define MALLOSCOPE_SYMBOL_FILE_VERSION_H

#include "base/nanoseconds.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* All zero: there is no such file. */
struct file_version {
    uint64_t size;
    uint64_t modified; /* ns since the epoch */
};

static inline struct file_version file_version_from(const struct stat *status) {
    return (struct file_version){(uint64_t)status->st_size, nanoseconds_of(status->st_mtim)};
}

static inline struct file_version file_version_of(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? file_version_from(&status) : (struct file_version){0};
}

static inline struct file_version file_version_at(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? file_version_from(&status) : (struct file_version){0};
}

static inline bool file_version_same(struct file_version a, struct file_version b) {
    return a.size == b.size && a.modified == b.modified;
}

#endif
