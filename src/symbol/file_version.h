/* The version of a file: whether it is still as it was when it was read before. */
#ifndef MALLOSCOPE_SYMBOL_FILE_VERSION_H
#define MALLOSCOPE_SYMBOL_FILE_VERSION_H

#include "base/nanoseconds.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* All zero: there is no such file. Whoever may write a file can give it any size and any time of modification. The
 * kernel alone sets the time of the last change (ctime), and no two files have the same number. */
struct file_version {
    uint64_t size;
    uint64_t modified, changed; /* ns since the epoch */
    uint64_t device, inode;
    uint64_t owner;
};

static inline struct file_version file_version_from(const struct stat *status) {
    return (struct file_version){
        .size = (uint64_t)status->st_size,
        .modified = nanoseconds_of(status->st_mtim),
        .changed = nanoseconds_of(status->st_ctim),
        .device = status->st_dev,
        .inode = status->st_ino,
        .owner = status->st_uid,
    };
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
    return a.size == b.size && a.modified == b.modified && a.changed == b.changed && a.device == b.device &&
           a.inode == b.inode && a.owner == b.owner;
}

/* Whether nobody but the user and root chose what is in the file. */
static inline bool file_version_is_own(struct file_version version) {
    return version.owner == 0 || version.owner == geteuid();
}

#endif
