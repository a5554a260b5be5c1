#include "base/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* What the kernel shows as files of /proc, /sys and the like are not files: reading takes messages out of a queue, or
 * never ends. */
static bool is_kernel_file(int found) {
    static const unsigned long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
        SECURITYFS_MAGIC, SELINUX_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC, BPF_FS_MAGIC};
    struct statfs system;
    if (fstatfs(found, &system) < 0) return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((unsigned long)system.f_type == kinds[i]) return true;
    return false;
}

int open_regular_found(int found) {
    if (found < 0) return found;
    struct stat status;
    int file = -1, error = ENOTSUP;
    if (fstat(found, &status) < 0) {
        error = errno;
    } else if (S_ISREG(status.st_mode) && !is_kernel_file(found)) {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", found);
        /* O_NONBLOCK: whoever holds a lease on the file is not waited for. */
        file = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        error = errno;
    }
    close(found);
    return file < 0 ? -error : file;
}

int open_regular(int folder, const char *path, int flags) {
    int found = openat(folder, path, O_PATH | O_CLOEXEC | flags);
    return open_regular_found(found < 0 ? -errno : found);
}
