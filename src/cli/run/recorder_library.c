#include "cli/run/recorder_library.h"
#include "base/memory.h"
#include "cli/run/installed.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY_NAME "libmalloscope.so"
#define SEPARATORS   " :\t\n"

#if defined(__x86_64__)
#define MULTIARCH_FOLDER "../lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH_FOLDER "../lib/aarch64-linux-gnu"
#elif defined(__riscv)
#define MULTIARCH_FOLDER "../lib/riscv64-linux-gnu"
#endif

static const char *const folders[] = {".", "../lib", MULTIARCH_FOLDER, "../lib64", MALLOSCOPE_LIBDIR, NULL};

/* A folder that only this user can write to, whose path has no separators of LD_PRELOAD. The caller frees the path. */
static int private_folder(char **ret_folder, struct problem *problem) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    bool usable = runtime && runtime[0] == '/' && !strpbrk(runtime, SEPARATORS) && access(runtime, W_OK) == 0;
    char *folder = memory_format_text("%s/malloscope-%u", usable ? runtime : "/tmp", (unsigned)getuid());
    struct stat status;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        int error = errno;
        problem_set(problem, problem_kind_of_errno(error),
            "install malloscope in a folder whose path has no blanks and colons",
            "cannot make the folder '%s': %s", folder, strerror(error));
        free(folder);
        return -(int)problem_kind_of_errno(error);
    }
    if (lstat(folder, &status) < 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid() ||
        (status.st_mode & 022)) {
        int r = problem_set(problem, PROBLEM_PERMISSION,
            "remove it, or set XDG_RUNTIME_DIR to a folder of your own",
            "'%s' is not a folder that only you can write to, so no link to the recorder is made there",
            folder);
        free(folder);
        return r;
    }
    *ret_folder = folder;
    return 0;
}

static int link_without_separators(const char *library, char **ret_path, struct problem *problem) {
    cleanup_text char *folder = NULL;
    int r = private_folder(&folder, problem);
    if (r < 0) return r;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const char *p = library; *p; p++) hash = (hash ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    char *link = memory_format_text("%s/libmalloscope-%016llx.so", folder, (unsigned long long)hash);
    char target[PATH_MAX] = "";
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length >= 0) target[length] = 0;
    if (strcmp(target, library) != 0) {
        cleanup_text char *fresh = memory_format_text("%s.%d", link, (int)getpid());
        unlink(fresh);
        if (symlink(library, fresh) < 0 || rename(fresh, link) < 0) {
            int error = errno;
            free(link);
            return problem_set(problem, problem_kind_of_errno(error),
                "install malloscope in a folder whose path has no blanks and colons",
                "'%s' cannot be preloaded because of a blank or colon in its path, and no link to it can be "
                "made: %s",
                library, strerror(error));
        }
    }
    *ret_path = link;
    return 0;
}

int recorder_library_find(char **ret_path, struct problem *problem) {
    const char *given = getenv("MALLOSCOPE_LIBRARY");
    char *path = NULL;
    if (given && *given) {
        path = realpath(given, NULL);
        if (!path) {
            int error = errno;
            return problem_set(problem, problem_kind_of_errno(error),
                "correct the environment variable MALLOSCOPE_LIBRARY, or unset it",
                "cannot find the recorder '%s': %s", given, strerror(error));
        }
    } else {
        path = installed_find(LIBRARY_NAME, folders);
        if (!path)
            return problem_set(problem, PROBLEM_MISSING,
                "build or install malloscope whole, or name the library in the environment variable "
                "MALLOSCOPE_LIBRARY",
                "cannot find the recorder " LIBRARY_NAME
                " beside the command, in its ../lib, or in " MALLOSCOPE_LIBDIR);
    }
    if (!strpbrk(path, SEPARATORS)) {
        *ret_path = path;
        return 0;
    }
    int r = link_without_separators(path, ret_path, problem);
    free(path);
    return r;
}

char *recorder_library_preload_value(const char *library, const char *existing) {
    if (!existing || !*existing) return memory_copy_text(library);
    /* The library is already there if a recorded program starts `malloscope run` itself. */
    size_t length = strlen(library);
    for (const char *p = existing; *p;) {
        size_t part = strcspn(p, SEPARATORS);
        if (part == length && strncmp(p, library, length) == 0) return memory_copy_text(existing);
        p += part;
        p += strspn(p, SEPARATORS);
    }
    return memory_format_text("%s:%s", library, existing);
}
