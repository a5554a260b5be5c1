#include "model/source.h"
#include "base/memory.h"
#include "model/duplicate_dumps.h"

#include "model/model.h"
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

static const char SUFFIX[] = ".mscope";

static const char *become_owner(void) {
    return geteuid() == 0
               ? "root may not do that here: a container, a namespace or a security module forbids "
                 "it; run this where the program was started"
               : "a recording and a process can be read by their owner: run this as that user, or "
                 "as root with sudo";
}

static bool has_suffix(const char *name) {
    size_t length = strlen(name);
    return length > strlen(SUFFIX) && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

int recording_file_open(
    const char *path, int writer, struct recording_file *ret_file, struct problem *problem) {
    /* Not to be held up by a pipe that nobody writes. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        int error = errno;
        const char *remedy = error == ENOENT || error == ENOTDIR
                                 ? "check the path; 'malloscope run' names the recording it writes, usually "
                                   "malloscope.PROGRAM.PID.mscope in the folder it was started in"
                             : error == EACCES || error == EPERM ? become_owner()
                                                                 : problem_remedy_of_errno(error);
        return problem_set(problem, error == ENOTDIR ? PROBLEM_MISSING : problem_kind_of_errno(error), remedy,
            "cannot open '%s': %s", path, strerror(error));
    }
    struct stat status;
    if (fstat(descriptor, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(descriptor);
        return problem_set(problem, PROBLEM_DAMAGED,
            "name a recording (*.mscope), a folder of recordings or a process number",
            "'%s' is not a regular file", path);
    }
    *ret_file = (struct recording_file){.descriptor = descriptor, .path = path, .writer = writer};
    return 0;
}

void recording_file_close(struct recording_file *file) {
    close(file->descriptor);
}

/* What a file's beginning says about whose recording it is. */
enum likeness { NOT_A_RECORDING, RECORDING_OF_ANOTHER, RECORDING_OF_PROCESS };

static enum likeness likeness_of(int descriptor, int pid) {
    struct recording_header header;
    if (pread(descriptor, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0)
        return NOT_A_RECORDING;
    return writer_process_has_number(pid, header.pid) ? RECORDING_OF_PROCESS : RECORDING_OF_ANOTHER;
}

/* Opens the file behind a mapping by the first path that leads to it, and leaves that path in `path`. */
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
        if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
            continue; /* to open a device may set it off */
        int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (descriptor >= 0) {
            if (way == 2 ||
                (fstat(descriptor, &status) == 0 && writer_process_maps_file(pid, mapping, &status)))
                return descriptor;
            close(descriptor);
        } else if (errno != ENOENT) {
            error = errno;
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

/* The recording that fits process `pid` best among the files that `holder` has mapped. */
struct search {
    enum likeness best;
    char found[PATH_MAX + 64];
    int refusal; /* why one could not be opened */
    char refused[PATH_MAX];
};

static int search_mappings(int holder, int pid, struct search *search) {
    struct writer_process_mappings mappings;
    int r = writer_process_mappings_read(holder, &mappings);
    if (r < 0) return r;
    char path[PATH_MAX + 64];
    for (size_t i = 0; i < mappings.count; i++) {
        int descriptor = open_mapped(holder, &mappings.list[i], path, sizeof path);
        if (descriptor < 0) {
            if (!has_suffix(mappings.list[i].path)) continue;
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

/* A process that was attached to is recorded by another one. */
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
        return problem_set(problem, problem_kind_of_errno(-r), become_owner(),
            "cannot look into process %d: %s", pid, strerror(-r));
    if (search.best != RECORDING_OF_PROCESS) search_collectors(pid, &search);

    if (search.best == NOT_A_RECORDING && search.refusal)
        return problem_set(problem, problem_kind_of_errno(search.refusal), become_owner(),
            "cannot open '%s', the recording of process %d: %s", search.refused, pid,
            strerror(search.refusal));
    if (search.best == NOT_A_RECORDING) return no_recording(pid, problem);
    *ret_path = memory_copy_text(search.found);
    return 0;
}

char *model_find_recording_held_by(int pid) {
    struct search search = {0};
    bool found = search_mappings(pid, pid, &search) == 0 && search.best != NOT_A_RECORDING;
    return found ? memory_copy_text(search.found) : NULL;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* `path` is the source's from then on. */
static void add_path(struct source *source, char *path) {
    source->paths = memory_reallocate_array(source->paths, source->count + 1, sizeof *source->paths);
    source->paths[source->count++] = path;
}

static int find_in_folder(const char *name, struct source *source, struct problem *problem) {
    DIR *folder = opendir(name);
    if (!folder) {
        int error = errno;
        return problem_set(problem, problem_kind_of_errno(error), become_owner(),
            "cannot read the folder '%s': %s", name, strerror(error));
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        if (has_suffix(entry->d_name)) add_path(source, memory_format_text("%s/%s", name, entry->d_name));
    closedir(folder);
    if (source->count == 0)
        return problem_set(problem, PROBLEM_MISSING,
            "name a folder that holds *.mscope files, or a single recording",
            "there are no recordings in the folder '%s'", name);
    qsort(source->paths, source->count, sizeof *source->paths, compare_names);
    source->count = duplicate_dumps_leave_out(source->paths, source->count);
    source->is_folder = true;
    return 0;
}

/* The process number that `name` is, or 0. */
static int process_number(const char *name) {
    for (const char *c = name; *c; c++)
        if (!isdigit((unsigned char)*c)) return 0;
    errno = 0;
    long number = strtol(name, NULL, 10);
    return errno == 0 && number > 0 && number <= INT_MAX ? (int)number : 0;
}

int source_find(const char *name, struct source *ret_source, struct problem *problem) {
    struct source source = {.pid = process_number(name)};
    struct stat status;
    int r;
    if (source.pid) {
        char *path = NULL;
        r = model_find_recording_of(source.pid, &path, problem);
        if (r == 0) add_path(&source, path);
        /* A file may have such a name too, but a process comes first: "./123" is always the file. */
        if (r == -PROBLEM_MISSING && stat(name, &status) == 0) source.pid = 0;
        if (source.pid) {
            if (r == 0) *ret_source = source;
            return r;
        }
    }
    r = 0;
    if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
        r = find_in_folder(name, &source, problem);
    else
        add_path(&source, memory_copy_text(name));
    if (r < 0)
        source_free(&source);
    else
        *ret_source = source;
    return r;
}

void source_free(struct source *source) {
    for (size_t i = 0; i < source->count; i++) free(source->paths[i]);
    free(source->paths);
    *source = (struct source){0};
}
