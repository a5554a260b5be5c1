/* From a process to its recording: the functions model_find_recording_* of model.h. */
#include "base/memory.h"
#include "base/open_regular.h"
#include "core/recording.h"
#include "model/model.h"
#include "model/recording_file.h"
#include "model/running_processes.h"
#include "model/writer_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS_MOST 8 /* `malloscope run malloscope run ...` */

/* What the header of a file says about a process; the best last. */
enum likeness { NOT_A_RECORDING, RECORDING_OF_ANOTHER, RECORDING_OF_PROCESS };

static enum likeness likeness_of(int descriptor, int pid) {
    struct recording_header header;
    if (pread(descriptor, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0)
        return NOT_A_RECORDING;
    return writer_process_has_number(pid, header.pid) ? RECORDING_OF_PROCESS : RECORDING_OF_ANOTHER;
}

/* Opens the file behind a mapping, and leaves the path that led to it in `path`. It tries the path itself, the path
 * below the root of the process, and the kernel's link to the mapped file. Returns a descriptor or a negative
 * errno. */
static int open_mapped(int pid, const struct writer_process_mapping *mapping, char *path, size_t path_size) {
    int error = ENOENT;
    for (int way = 0; way < 3; way++) {
        if (way == 0)
            snprintf(path, path_size, "%s", mapping->path);
        else if (way == 1)
            snprintf(path, path_size, "/proc/%d/root%s", pid, mapping->path);
        else
            snprintf(path, path_size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start,
                mapping->end);
        if (way < 2 && mapping->deleted) continue;

        struct stat status;
        int descriptor = open_regular(AT_FDCWD, path, 0);
        if (descriptor >= 0) {
            if (way == 2 ||
                (fstat(descriptor, &status) == 0 && writer_process_maps_file(pid, mapping, &status)))
                return descriptor;
            close(descriptor);
        } else if (descriptor != -ENOENT && descriptor != -ENOTSUP) {
            error = -descriptor;
        }
    }
    return -error;
}

static int no_recording(int pid, struct problem *problem) {
    return problem_set(problem, PROBLEM_MISSING,
        "record it now with 'sudo malloscope attach PID', or start the program under 'malloscope run -- "
        "PROGRAM'",
        "process %d has no recording", pid);
}

/* The best recording of a process that was found so far. */
struct search {
    enum likeness best;
    char found[PATH_MAX + 64];
    int refusal;            /* errno of a recording that could not be opened; 0: there is none */
    char refused[PATH_MAX]; /* its path */
};

/* Looks for a recording of process `pid` among the mappings of process `holder`. Returns 0 or a negative errno. */
static int search_mappings(int holder, int pid, struct search *search) {
    struct writer_process_mappings mappings;
    int r = writer_process_mappings_read(holder, &mappings);
    if (r < 0) return r;
    char path[PATH_MAX + 64];
    for (size_t i = 0; i < mappings.count; i++) {
        int descriptor = open_mapped(holder, &mappings.list[i], path, sizeof path);
        if (descriptor < 0) {
            if (!recording_file_has_suffix(mappings.list[i].path)) continue;
            search->refusal = -descriptor;
            snprintf(search->refused, sizeof search->refused, "%s", mappings.list[i].path);
            continue;
        }
        enum likeness likeness = likeness_of(descriptor, pid);
        close(descriptor);
        if (likeness > search->best) {
            search->best = likeness;
            memcpy(search->found, path, sizeof search->found);
        }
    }
    writer_process_mappings_free(&mappings);
    return 0;
}

/* Looks for a recording of the process among the mappings of collectors: a process that is attached to is recorded
 * by another one. */
static void search_collectors(int pid, struct search *search) {
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int holder = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        struct search attempt = {0};
        if (holder > 0 && writer_process_is_called(holder, "malloscope") &&
            search_mappings(holder, pid, &attempt) == 0 && attempt.best == RECORDING_OF_PROCESS)
            *search = attempt;
    }
    if (folder) closedir(folder);
}

int model_find_recording_of(int pid, char **ret_path, struct problem *problem) {
    struct search search = {0};
    int r = search_mappings(pid, pid, &search);
    if (r == -ESRCH)
        return problem_set(problem, PROBLEM_MISSING,
            "list processes with 'ps' or 'pgrep -a NAME'; to read a recording that a program has left, name "
            "its file",
            "there is no process %d", pid);
    if (r < 0)
        return problem_set(problem, problem_kind_of_errno(-r), recording_file_access_remedy(),
            "cannot look into process %d: %s", pid, strerror(-r));
    if (search.best != RECORDING_OF_PROCESS) search_collectors(pid, &search);

    if (search.best == NOT_A_RECORDING && search.refusal)
        return problem_set(problem, problem_kind_of_errno(search.refusal), recording_file_access_remedy(),
            "cannot open '%s', the recording of process %d: %s", search.refused, pid,
            strerror(search.refusal));
    if (search.best == NOT_A_RECORDING) return no_recording(pid, problem);
    *ret_path = memory_copy_text(search.found);
    return 0;
}

int model_find_program_of_run(int pid) {
    for (int depth = 0; depth < RUNS_MOST && writer_process_is_called(pid, "malloscope"); depth++) {
        char *held = model_find_recording_held_by(pid);
        int child = held ? 0 : running_processes_only_child(pid);
        free(held);
        if (!child) break;
        pid = child;
    }
    return pid;
}

char *model_find_recording_held_by(int pid) {
    struct search search = {0};
    bool found = search_mappings(pid, pid, &search) == 0 && search.best != NOT_A_RECORDING;
    return found ? memory_copy_text(search.found) : NULL;
}
