#include "base/new_file.h"

#include "base/memory.h"
#include "base/unfinished_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int new_file_start(const char *path, bool replace, struct new_file *ret_file) {
    /* Not the last word, but before any work is done. */
    if (!replace && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return -EEXIST;
    struct new_file file = {
        .path = path, .replace = replace, .temporary = memory_format_text("%s.XXXXXX", path)};
    file.descriptor = mkostemp(file.temporary, O_CLOEXEC);
    if (file.descriptor < 0) {
        int error = errno;
        free(file.temporary);
        return -error;
    }
    unfinished_file_begin(file.temporary);
    *ret_file = file;
    return 0;
}

/* Without `replace` a link fails if the name is taken, where a rename would not. */
static int publish(const struct new_file *file) {
    if (file->replace) return rename(file->temporary, file->path) < 0 ? -errno : 0;
    if (link(file->temporary, file->path) == 0) {
        unlink(file->temporary);
        return 0;
    }
    if (errno == EEXIST) return -EEXIST;
    /* A filesystem without hard links. */
    return renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->path, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

int new_file_end(struct new_file *file, int error) {
    if (close(file->descriptor) < 0 && error == 0) error = -errno;
    if (error == 0) error = publish(file);
    if (error < 0) unlink(file->temporary);
    unfinished_file_end();
    free(file->temporary);
    *file = (struct new_file){.descriptor = -1};
    return error;
}

int new_file_problem(int error, const char *path, struct problem *problem) {
    switch (-error) {
    case EEXIST:
        return problem_set(problem, PROBLEM_FAILURE, "choose another name, or replace it with -f",
            "'%s' exists already", path);
    case ENOENT:
    case ENOTDIR:
        return problem_set(problem, PROBLEM_MISSING, "create the folder first, or choose another",
            "cannot write '%s': its folder does not exist", path);
    case ENOSPC:
    case EDQUOT:
        return problem_set(problem, PROBLEM_FAILURE, "make room, or choose a folder on another disk",
            "cannot write '%s': %s", path, strerror(-error));
    default:
        return problem_set(problem, problem_kind_of_errno(-error), "choose a folder that you may write to",
            "cannot write '%s': %s", path, strerror(-error));
    }
}
