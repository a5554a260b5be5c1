/* Parts of paths. */
#ifndef MALLOSCOPE_BASE_PATH_H
#define MALLOSCOPE_BASE_PATH_H

#include <string.h>

/* The part after the last slash: "libc.so.6" of "/lib/libc.so.6". Points into `path`. NULL for NULL. */
static inline const char *path_last_part(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

#endif
