#include "base/open_in_root.h"

#include "base/memory.h"
#include "base/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernels before 5.6 cannot resolve links below another root: there they lead to our own files, which is
 * noticed by the build-id. */
static int open_joined(const char *root, const char *path, int flags) {
    char *joined = memory_format_text("%s/%s", root, path);
    int fd = open_regular(AT_FDCWD, joined, flags);
    free(joined);
    return fd;
}

int open_in_root(const char *root, const char *path, int flags) {
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -errno;
    struct open_how how = {
        .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    long found = syscall(SYS_openat2, folder, path, &how, sizeof how);
    int error = errno;
    close(folder);
    if (found >= 0) return open_regular_found((int)found);
    return error == ENOSYS ? open_joined(root, path, flags) : -error;
}
