#include "cli/run/keep_recordings.h"

#include "base/memory.h"
#include "cli/run/installed.h"
#include "cli/run/recordings_in_use.h"
#include "core/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDING         ".mscope"
#define ARCHIVE_ENDING ".mscar"

extern char **environ;

/* ---- the largest ---- */

struct child {
    char *path;
    uint64_t peak;
    bool is_in_use;
};

static uint64_t peak_of(const char *path) {
    struct recording_header header;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t length = file < 0 ? -1 : pread(file, &header, sizeof header, 0);
    if (file >= 0) close(file);
    return length == (ssize_t)sizeof header ? header.peak_bytes : 0;
}

static int compare_children(const void *a, const void *b) {
    uint64_t x = ((const struct child *)a)->peak, y = ((const struct child *)b)->peak;
    return (x < y) - (x > y);
}

void keep_recordings(struct run_recordings *recordings, uint64_t most) {
    size_t count = recordings->child_count, kept = 0;
    if (count <= most) return;
    bool *in_use = memory_allocate(count * sizeof *in_use);
    struct child *children = memory_allocate(count * sizeof *children);
    recordings_in_use(recordings->children, count, in_use);
    for (size_t i = 0; i < count; i++)
        children[i] = (struct child){recordings->children[i], peak_of(recordings->children[i]), in_use[i]};
    qsort(children, count, sizeof *children, compare_children);
    for (size_t i = 0; i < count; i++) {
        if (i >= most && !children[i].is_in_use && unlink(children[i].path) == 0)
            free(children[i].path);
        else
            recordings->children[kept++] = children[i].path;
    }
    recordings->child_count = kept;
    free(children);
    free(in_use);
}

/* ---- one archive ---- */

static char *archive_name(const char *recording) {
    size_t length = strlen(recording), ending = strlen(ENDING);
    if (length > ending && strcmp(recording + length - ending, ENDING) == 0) length -= ending;
    return memory_format_text("%.*s" ARCHIVE_ENDING, (int)length, recording);
}

/* Runs `malloscope archive`, which is in the larger of the two executables. Returns its exit status, or a negative
 * errno. */
static int run_archive(char **arguments) {
    cleanup_text char *commands = installed_commands();
    if (!commands) return -ENOENT;
    pid_t pid;
    int error = posix_spawn(&pid, commands, NULL, NULL, arguments, environ), status = 0;
    if (error) return -error;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : PROBLEM_FAILURE;
}

static void remove_unused(char **paths, size_t count) {
    bool *in_use = memory_allocate(count * sizeof *in_use);
    recordings_in_use(paths, count, in_use);
    for (size_t i = 0; i < count; i++)
        if (!in_use[i]) unlink(paths[i]);
    free(in_use);
}

int keep_recordings_merged(const struct run_recordings *recordings, bool replace, bool quiet,
    char **ret_archive, struct problem *problem) {
    char *output = archive_name(recordings->main);
    char *options[] = {"malloscope", "archive", "-o", output, replace ? "-f" : NULL, quiet ? "-q" : NULL};
    size_t count = recordings->child_count + 1, used = 0;
    char **arguments = memory_allocate((count + 8) * sizeof *arguments);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i]) arguments[used++] = options[i];
    arguments[used++] = "--";
    char **paths = arguments + used;
    paths[0] = recordings->main;
    memcpy(paths + 1, recordings->children, (count - 1) * sizeof *paths);
    int r = run_archive(arguments);
    if (r == 0) {
        remove_unused(paths, count);
        *ret_archive = output;
    } else {
        problem_set(problem, PROBLEM_FAILURE, "merge them with 'malloscope archive FILE... -o FILE'",
            "the recordings are not merged: 'malloscope archive' %s%s; they stay as they are",
            r < 0 ? "cannot be run: " : "failed", r < 0 ? strerror(-r) : "");
        free(output);
    }
    free(arguments);
    return r == 0 ? 0 : -PROBLEM_FAILURE;
}
