#include "base/new_file.h"
#include "model/archive.h"
#include "model/model.h"
#include "model/snapshot.h"
#include "model/source.h"

#include <errno.h>
#include <unistd.h>

/* Writes only the parts that hold anything. The others become holes, which take no room on disk. */
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

static int write_file(const struct snapshot *snapshot, const char *path, bool replace) {
    struct new_file file;
    int r = new_file_start(path, replace, &file);
    return r < 0 ? r : new_file_end(&file, write_parts(file.descriptor, snapshot));
}

/* Replaces the file of an archive by the recording in it. */
static int take_out(struct recording_file *file, struct problem *problem) {
    struct archive archive;
    struct recording_file recording;
    int r = archive_open(file->descriptor, file->path, &archive, problem);
    if (r == 0 && archive.recording_count != 1)
        r = problem_set(problem, PROBLEM_USAGE, "'malloscope report' shows them together",
            "'%s' holds %zu recordings, and one can be copied", file->path, archive.recording_count);
    if (r == 0) r = archive_take_recording(&archive, 0, &recording, problem);
    archive_close(&archive);
    recording_file_close(file);
    if (r == 0) *file = recording;
    return r;
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
    if (r == 0 && archive_is_one(file.descriptor)) r = take_out(&file, problem);
    if (r == 0) {
        file.will_be_written = true;
        r = snapshot_take(&file, &snapshot, problem);
        recording_file_close(&file);
    }
    source_free(&source);
    if (r < 0) return r;

    snapshot_make_stand_alone(&snapshot);
    r = write_file(&snapshot, path, replace);
    snapshot_free(&snapshot);
    return r < 0 ? new_file_problem(r, path, problem) : 0;
}
