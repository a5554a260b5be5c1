/* What libraries open, on behalf of files that are not trusted.
 *
 * A program's debug info names further files: a separate debug file, common parts (dwz), parts of single units (.dwo).
 * libdw opens what stands there, with the rights of the reader. A hostile program names a pipe, and the command waits
 * for ever; or a device, which opening alone can set off. Therefore open is defined here, in the executable, where the
 * dynamic linker finds it first: what a library opens for reading is looked at before it is opened
 * (base/open_regular.h). Calls from the executable itself are passed on. */
#include "base/own_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Names that the compiler does not know, for the symbols that libraries ask for. A caller passes `mode` in the same
 * register, whether it takes the function for one of three arguments or for one of any number. If it passes none, the
 * kernel does not look at it. */
int library_open(const char *path, int flags, mode_t mode) __asm__("open")
    __attribute__((visibility("default")));
int library_open64(const char *path, int flags, mode_t mode) __asm__("open64")
    __attribute__((visibility("default")));

/* Devices that libraries need, and that do nothing when they are opened. */
static bool is_harmless_device(const struct stat *status) {
    enum { MEMORY_DEVICES = 1, NUL = 3, ZERO = 5, RANDOM = 8, URANDOM = 9 };
    unsigned kind = minor(status->st_rdev);
    return S_ISCHR(status->st_mode) && major(status->st_rdev) == MEMORY_DEVICES &&
           (kind == NUL || kind == ZERO || kind == RANDOM || kind == URANDOM);
}

static int open_checked(const char *path, int flags) {
    int found = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW)), file = -1;
    if (found < 0) return -1;
    struct stat status;
    int error = ENXIO;
    if (fstat(found, &status) == 0 &&
        (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || is_harmless_device(&status))) {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", found);
        file = openat(AT_FDCWD, link, flags & ~O_NOFOLLOW);
        error = errno;
    }
    close(found);
    errno = error;
    return file;
}

static int open_for(const void *caller, const char *path, int flags, mode_t mode) {
    bool reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_PATH));
    return reads && !own_code_has(caller) ? open_checked(path, flags) : openat(AT_FDCWD, path, flags, mode);
}

int library_open(const char *path, int flags, mode_t mode) {
    return open_for(__builtin_return_address(0), path, flags, mode);
}

int library_open64(const char *path, int flags, mode_t mode) {
    return open_for(__builtin_return_address(0), path, flags, mode);
}
