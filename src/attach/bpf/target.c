#include "attach/bpf/target.h"

#include "attach/bpf/target_access.h"
#include "base/memory.h"
#include "platform/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

/* ---- whether the process can be attached to ---- */

struct status {
    char state;
    long thread_group, parent;
    bool has_memory;
};

static bool read_status(pid_t pid, struct status *ret_status) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    struct status status = {0};
    while (fgets(line, sizeof line, file)) {
        sscanf(line, "State: %c", &status.state);
        sscanf(line, "Tgid: %ld", &status.thread_group);
        sscanf(line, "PPid: %ld", &status.parent);
        if (strncmp(line, "VmSize:", 7) == 0) status.has_memory = true;
    }
    fclose(file);
    *ret_status = status;
    return true;
}

static int check_process(pid_t pid, struct problem *problem) {
    struct status status;
    if (pid <= 0 || !read_status(pid, &status))
        return problem_set(
            problem, PROBLEM_MISSING, "list the processes with ps -e", "there is no process %d", (int)pid);
    char remedy[128];
    if (status.thread_group != pid) {
        snprintf(remedy, sizeof remedy, "attach to the process: %ld", status.thread_group);
        return problem_set(problem, PROBLEM_MISSING, remedy, "%d is a thread of process %ld, not a process",
            (int)pid, status.thread_group);
    }
    if (status.state == 'Z' || status.state == 'X') {
        snprintf(remedy, sizeof remedy, "its memory is gone; its parent %ld has yet to fetch its exit status",
            status.parent);
        return problem_set(
            problem, PROBLEM_MISSING, remedy, "process %d has ended (it is a zombie)", (int)pid);
    }
    if (!status.has_memory)
        return problem_set(problem, PROBLEM_FAILURE, "choose a process that runs a program",
            "process %d is a part of the kernel and has no heap", (int)pid);
    return 0;
}

/* ---- its files ---- */

/* Whether `path` leads to the file that is mapped, and not to another one that has taken its name since. */
static bool is_file(const char *path, const struct target_file *file) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_ino == file->inode &&
           makedev(file->device >> 32, file->device & UINT32_MAX) == status.st_dev;
}

/* A path by which the tool can open a mapped file, or NULL. Three are tried: the file's name below the root
 * folder of the process, which is another one in a container; the same name here, since the tool may not be
 * allowed to look below the process's root; the kernel's link to what is mapped, which also leads to a deleted
 * file. */
static char *find_open_path(pid_t pid, const struct target_file *file, uint64_t start, uint64_t end) {
    struct stat status;
    char *path = memory_format_text("/proc/%d/root%s", (int)pid, file->path);
    if (is_file(path, file)) return path;
    free(path);
    if (is_file(file->path, file)) return memory_copy_text(file->path);
    path = memory_format_text("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, start, end);
    if (stat(path, &status) == 0) return path;
    free(path);
    return NULL;
}

static struct target_file *find_or_add(
    struct target *target, const char *path, uint64_t device, uint64_t inode) {
    for (size_t i = 0; i < target->file_count; i++)
        if (target->files[i].device == device && target->files[i].inode == inode) return &target->files[i];
    target->files = memory_reallocate(target->files, (target->file_count + 1) * sizeof *target->files);
    struct target_file *file = &target->files[target->file_count++];
    *file = (struct target_file){.path = memory_copy_text(path), .device = device, .inode = inode};
    return file;
}

static void add_mapping(struct target *target, const struct maps_line *line) {
    if (line->inode == 0 || line->path[0] != '/') return;
    struct target_file *file = find_or_add(target, line->path, line->device, line->inode);
    file->segments = memory_reallocate(file->segments, (file->segment_count + 1) * sizeof *file->segments);
    file->segments[file->segment_count++] =
        (struct target_segment){line->start, line->end, line->file_offset};
    if (!line->executable) return;
    if (!file->open_path) file->open_path = find_open_path(target->pid, file, line->start, line->end);
    file->has_code = true;
}

static void clear_file(struct target_file *file) {
    free(file->path);
    free(file->open_path);
    free(file->segments);
}

static void drop_files_without_code(struct target *target) {
    size_t kept = 0;
    for (size_t i = 0; i < target->file_count; i++) {
        if (target->files[i].has_code)
            target->files[kept++] = target->files[i];
        else
            clear_file(&target->files[i]);
    }
    target->file_count = kept;
}

static void mark_program(struct target *target) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)target->pid);
    if (stat(path, &status) != 0) return;
    for (size_t i = 0; i < target->file_count; i++) {
        struct target_file *file = &target->files[i];
        if (file->inode != status.st_ino) continue;
        struct stat same;
        /* On btrfs and overlay file systems, the device in maps is not the one that stat gives: both files are
         * asked by stat. */
        if (file->open_path && stat(file->open_path, &same) == 0 && same.st_dev != status.st_dev) continue;
        file->is_program = true;
    }
}

static int cannot_read_map(pid_t pid, int error, const char *remedy, struct problem *problem) {
    return problem_set(problem, problem_kind_of_errno(error), remedy,
        "cannot read the memory map of process %d: %s", (int)pid, strerror(error));
}

static int read_files(struct target *target, struct problem *problem) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)target->pid);
    int maps = open(path, O_RDONLY | O_CLOEXEC);
    if (maps < 0) {
        const char *remedy = "run malloscope as root, or as the user who owns the process";
        return cannot_read_map(target->pid, errno, errno == EACCES ? remedy : NULL, problem);
    }
    struct maps_reader reader = {.file_plus_one = maps + 1};
    struct maps_line line;
    while (maps_next(&reader, &line)) add_mapping(target, &line);
    maps_close(&reader);
    /* The kernel lets nobody read the map of a process that has ended meanwhile. */
    if (reader.error) return cannot_read_map(target->pid, ESRCH, "run malloscope as root", problem);
    drop_files_without_code(target);
    if (target->file_count == 0)
        return problem_set(problem, PROBLEM_FAILURE, "if it is just starting or ending, try again",
            "process %d has no program in its memory", (int)target->pid);
    mark_program(target);
    return 0;
}

static char *read_name(pid_t pid) {
    char path[64], link[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length <= 0) return memory_copy_text("?");
    link[length] = '\0';
    return memory_copy_text(lbasename(link));
}

int target_open(pid_t pid, struct target *ret_target, struct problem *problem) {
    int r = check_process(pid, problem);
    if (r == 0) r = target_access_check(pid, problem);
    if (r < 0) return r;
    struct target target = {.pid = pid};
    r = read_files(&target, problem);
    if (r < 0) {
        target.memory = -1;
        target_close(&target);
        return r;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    target.memory = open(path, O_RDONLY | O_CLOEXEC);
    target.name = read_name(pid);
    *ret_target = target;
    return 0;
}

void target_close(struct target *target) {
    for (size_t i = 0; i < target->file_count; i++) clear_file(&target->files[i]);
    free(target->files);
    free(target->name);
    if (target->memory >= 0) close(target->memory);
}

const struct target_file *target_find(const struct target *target, uint64_t address, uint64_t *ret_offset) {
    for (size_t i = 0; i < target->file_count; i++) {
        const struct target_file *file = &target->files[i];
        for (size_t k = 0; k < file->segment_count; k++) {
            const struct target_segment *segment = &file->segments[k];
            if (address < segment->start || address >= segment->end) continue;
            *ret_offset = address - segment->start + segment->file_offset;
            return file;
        }
    }
    return NULL;
}

uint64_t target_address(const struct target_file *file, uint64_t file_offset) {
    for (size_t k = 0; k < file->segment_count; k++) {
        const struct target_segment *segment = &file->segments[k];
        if (file_offset >= segment->file_offset &&
            file_offset - segment->file_offset < segment->end - segment->start)
            return file_offset - segment->file_offset + segment->start;
    }
    return 0;
}

bool target_read(const struct target *target, uint64_t address, uint64_t *ret_word) {
    return target->memory >= 0 &&
           pread(target->memory, ret_word, sizeof *ret_word, (off_t)address) == sizeof *ret_word;
}
