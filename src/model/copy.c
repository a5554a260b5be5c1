#include "model/model.h"
#include "model/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the byte counts of all threads are whole: nothing is left in the program's memory. */
static bool threads_are_complete(const struct snapshot *snapshot) {
    struct table_cursor cursor = {0};
    for (const struct thread_record *record; (record = snapshot_next(snapshot, &snapshot->threads, &cursor));)
        if (record->state == THREAD_RUNNING && record->interval) return false;
    return true;
}

/* Turns the header into that of a recording nobody writes: of a running program, one that ended now. If a
 * thread's count could not be completed it reads as killed, which says that up to one interval a thread is
 * missing. */
static void make_stand_alone(struct snapshot *snapshot) {
    struct recording_header *header = snapshot_header(snapshot);
    if (snapshot->state == PROCESS_RUNNING) {
        header->flags |= RECORDING_SNAPSHOT;
        if ((header->flags & RECORDING_EXACT) || threads_are_complete(snapshot))
            header->flags |= RECORDING_FINISHED;
        header->last_event = snapshot->elapsed;
    }
    header->active = 0;
    if (!(snapshot->bytes_in_use > snapshot->size)) header->arena_used = snapshot->size;
    header->arena_reserved = snapshot->size;
    header->size_max = snapshot->size;
}

/* Only what is not zero: the copy takes no more room on disk than the recording's pages in use. */
static int write_parts(int descriptor, const struct snapshot *snapshot) {
    if (ftruncate(descriptor, (off_t)snapshot->size) < 0) return -errno;
    for (uint64_t start = 0; start < snapshot->size; start += SNAPSHOT_PART_SIZE) {
        if (!snapshot_part_is_used(snapshot, start / SNAPSHOT_PART_SIZE)) continue;
        uint64_t end =
            start + SNAPSHOT_PART_SIZE < snapshot->size ? start + SNAPSHOT_PART_SIZE : snapshot->size;
        for (uint64_t at = start; at < end;) {
            ssize_t written = pwrite(descriptor, snapshot->bytes + at, end - at, (off_t)at);
            if (written < 0 && errno != EINTR) return -errno;
            if (written > 0) at += (uint64_t)written;
        }
    }
    return 0;
}

/* Gives the finished file its name. Without `replace` a link fails if the name is taken, where a rename would
 * not. */
static int publish(const char *temporary, const char *path, bool replace) {
    if (replace) return rename(temporary, path) < 0 ? -errno : 0;
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return 0;
    }
    if (errno == EEXIST) return -EEXIST;
    /* A filesystem without hard links. */
    return renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static int write_file(const struct snapshot *snapshot, const char *path, bool replace) {
    char *temporary;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0) return -ENOMEM;
    int descriptor = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    int r = descriptor < 0 ? -errno : write_parts(descriptor, snapshot);
    if (descriptor >= 0) {
        if (close(descriptor) < 0 && r == 0) r = -errno;
        if (r == 0) r = publish(temporary, path, replace);
        if (r < 0) unlink(temporary);
    }
    free(temporary);
    return r;
}

static int describe(int error, const char *path, struct problem *problem) {
    switch (error) {
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
            "cannot write '%s': %s", path, strerror(error));
    default:
        return problem_set(problem, problem_kind_of_errno(error), "choose a folder that you may write to",
            "cannot write '%s': %s", path, strerror(error));
    }
}

int model_copy(const char *name, const char *path, bool replace, struct problem *problem) {
    struct source source;
    int r = source_find(name, &source, problem);
    if (r < 0) return r;
    if (source.is_folder) {
        source_free(&source);
        return problem_set(problem, PROBLEM_USAGE, "name one recording or process, or copy the files with cp",
            "'%s' is a folder of recordings", name);
    }
    struct recording_file file;
    struct snapshot snapshot;
    r = recording_file_open(source.paths[0], source.pid, &file, problem);
    if (r == 0) {
        r = snapshot_take(&file, &snapshot, problem);
        recording_file_close(&file);
    }
    source_free(&source);
    if (r < 0) return r;

    make_stand_alone(&snapshot);
    r = write_file(&snapshot, path, replace);
    snapshot_free(&snapshot);
    return r < 0 ? describe(-r, path, problem) : 0;
}
