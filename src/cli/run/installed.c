#include "cli/run/installed.h"
#include "base/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running executable, with symbolic links resolved. */
static char *own_folder(void) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return memory_copy_text(".");
    path[length] = 0;
    char *slash = strrchr(path, '/');
    if (slash) *slash = 0;
    return memory_copy_text(path);
}

char *installed_find(const char *name, const char *const folders[]) {
    cleanup_text char *own = own_folder();
    for (; *folders; folders++) {
        cleanup_text char *path = **folders == '/' ? memory_format_text("%s/%s", *folders, name)
                                                   : memory_format_text("%s/%s/%s", own, *folders, name);
        if (access(path, R_OK) == 0) return realpath(path, NULL);
    }
    return NULL;
}

char *installed_commands(void) {
    static const char *const folders[] = {".", "../libexec", MALLOSCOPE_LIBEXECDIR, NULL};
    return installed_find(INSTALLED_COMMANDS, folders);
}
