#include "cli/run/output_pattern.h"
#include "base/limits.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the pattern names, for messages: the files, the option that names others, and the default. */
struct purpose {
    const char *files, *option, *default_name;
};
static const struct purpose for_recordings = {"the recording", "-o", DEFAULT_RECORDING_PATTERN};
static const struct purpose for_dumps = {"the dumps", "--dump", DEFAULT_DUMP_PATTERN};

/* Checking */

static int check_percents(const struct purpose *purpose, const char *pattern, struct problem *problem) {
    for (const char *p = strchr(pattern, '%'); p; p = strchr(p + 2, '%'))
        if (!p[1] || !strchr("pehtn%", p[1]))
            return problem_set(problem, PROBLEM_USAGE,
                "use %p (pid), %e (program), %h (host), %t (time), %n (counter); %% is a percent sign",
                "'%.2s' in the name '%s' of %s means nothing", p, pattern, purpose->files);
    return 0;
}

/* The part of the pattern that must exist as a folder: up to the last slash before the first percent sign, or up to
 * the last slash if there is no percent sign. */
static char *fixed_folder(const char *pattern) {
    size_t length = strcspn(pattern, "%");
    while (length > 0 && pattern[length - 1] != '/') length--;
    if (!strchr(pattern, '%')) length = (size_t)(strrchr(pattern, '/') - pattern) + 1;
    return length > 1 ? memory_format_text("%.*s", (int)(length - 1), pattern) : memory_copy_text("/");
}

static int check_folder(const struct purpose *purpose, const char *pattern, struct problem *problem) {
    cleanup_text char *folder = fixed_folder(pattern);
    struct stat status;
    cleanup_text char *make =
        memory_format_text("make it with mkdir -p, or choose another with %s", purpose->option);
    cleanup_text char *move = memory_format_text("choose another place with %s", purpose->option);
    cleanup_text char *move_to = memory_format_text(
        "choose another place with %s, for instance %s /tmp", purpose->option, purpose->option);
    const char *verb = purpose == &for_dumps ? "dump" : "record";
    if (stat(folder, &status) < 0) {
        int error = errno;
        return problem_set(problem, problem_kind_of_errno(error), make, "cannot %s into the folder '%s': %s",
            verb, folder, strerror(error));
    }
    if (!S_ISDIR(status.st_mode))
        return problem_set(
            problem, PROBLEM_MISSING, move, "cannot %s into '%s': it is not a folder", verb, folder);
    /* Permissions, read-only mounts, quotas and odd file systems: only an attempt tells whether a file can be made. */
    cleanup_text char *trial = memory_format_text("%s/.malloscope.%d", folder, (int)getpid());
    int fd = open(trial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) {
        int error = errno;
        return problem_set(problem, error == EROFS ? PROBLEM_PERMISSION : problem_kind_of_errno(error),
            move_to, "cannot make files in the folder '%s': %s", folder, strerror(error));
    }
    if (fd >= 0) {
        close(fd);
        unlink(trial);
    }
    return 0;
}

static int check_file(const char *pattern, bool force, struct problem *problem) {
    struct stat status;
    if (strchr(pattern, '%') || lstat(pattern, &status) < 0)
        return 0; /* where names vary, only the recorder can check */
    if (!force)
        return problem_set(problem, PROBLEM_FAILURE, "replace it with -f, or choose another name with -o",
            "'%s' exists already", pattern);
    if (!S_ISREG(status.st_mode))
        return problem_set(
            problem, PROBLEM_FAILURE, "choose another name with -o", "'%s' is not a plain file", pattern);
    return 0;
}

static char *make_absolute(const char *given) {
    if (given[0] == '/') return memory_copy_text(given);
    cleanup_text char *here = getcwd(NULL, 0);
    if (!here) return NULL;
    /* A percent sign in the name of the current folder is no part of the pattern: it is doubled. */
    char *escaped = memory_allocate(2 * strlen(here) + 1), *out = escaped;
    for (const char *p = here; *p; p++) {
        if (*p == '%') *out++ = '%';
        *out++ = *p;
    }
    *out = 0;
    char *absolute = memory_format_text("%s/%s", strcmp(escaped, "/") == 0 ? "" : escaped, given);
    free(escaped);
    return absolute;
}

static int prepare(
    const struct purpose *purpose, const char *given, char **ret_pattern, struct problem *problem) {
    struct stat status;
    cleanup_text char *name = NULL;
    size_t length = given ? strlen(given) : 0;
    if (length == 0)
        name = memory_copy_text(purpose->default_name);
    else if (given[length - 1] == '/')
        name = memory_format_text("%s%s", given, purpose->default_name);
    else if (!strchr(given, '%') && stat(given, &status) == 0 && S_ISDIR(status.st_mode))
        name = memory_format_text("%s/%s", given, purpose->default_name);
    else
        name = memory_copy_text(given);
    char *pattern = make_absolute(name);
    if (!pattern) {
        int error = errno;
        cleanup_text char *advice = memory_format_text(
            "give an absolute path with %s, or change to a folder that exists", purpose->option);
        return problem_set(
            problem, PROBLEM_FAILURE, advice, "the current folder cannot be named: %s", strerror(error));
    }
    int r = check_percents(purpose, pattern, problem);
    if (r == 0 && strlen(pattern) > PATH_MAX - 64) {
        cleanup_text char *advice = memory_format_text("choose a shorter one with %s", purpose->option);
        r = problem_set(problem, PROBLEM_FAILURE, advice, "the name of %s is too long", purpose->files);
    }
    if (r == 0) r = check_folder(purpose, pattern, problem);
    if (r < 0)
        free(pattern);
    else
        *ret_pattern = pattern;
    return r;
}

int output_pattern_prepare(const char *given, bool force, char **ret_pattern, struct problem *problem) {
    char *pattern;
    int r = prepare(&for_recordings, given, &pattern, problem);
    if (r < 0) return r;
    r = check_file(pattern, force, problem);
    if (r < 0)
        free(pattern);
    else
        *ret_pattern = pattern;
    return r;
}

int output_pattern_prepare_dumps(const char *given, char **ret_pattern, struct problem *problem) {
    return prepare(&for_dumps, given, ret_pattern, problem);
}
