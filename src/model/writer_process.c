#include "model/writer_process.h"

#include "base/memory.h"
#include "platform/maps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

static const char DELETED[] = " (deleted)";

/* The kernel writes a newline in a path as \012. */
static void unescape_newlines(char *path) {
    char *to = path;
    for (const char *from = path; *from; to++) {
        bool newline = strncmp(from, "\\012", 4) == 0;
        *to = newline ? '\n' : *from;
        from += newline ? 4 : 1;
    }
    *to = '\0';
}

static struct writer_process_mapping mapping_of(const struct maps_line *line) {
    struct writer_process_mapping mapping = {.start = line->start,
        .end = line->end,
        .device = makedev((unsigned)(line->device >> 32), (unsigned)line->device),
        .inode = (ino_t)line->inode,
        .path = memory_copy_text(line->path)};
    size_t length = strlen(mapping.path);
    if (length > strlen(DELETED) && strcmp(mapping.path + length - strlen(DELETED), DELETED) == 0) {
        mapping.path[length - strlen(DELETED)] = '\0';
        mapping.deleted = true;
    }
    unescape_newlines(mapping.path);
    return mapping;
}

static FILE *open_of_process(int pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return fopen(path, "re");
}

int writer_process_mappings_read(int pid, struct writer_process_mappings *ret_mappings) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? -ESRCH : -errno;

    struct maps_reader reader = {.file_plus_one = file + 1};
    struct writer_process_mappings mappings = {0};
    for (struct maps_line line; maps_next(&reader, &line);) {
        if (!line.writable || !line.shared || line.path[0] != '/') continue;
        mappings.list = memory_reallocate_array(mappings.list, mappings.count + 1, sizeof *mappings.list);
        mappings.list[mappings.count++] = mapping_of(&line);
    }
    maps_close(&reader);
    /* Anybody may open the file. The kernel checks access when it is read. */
    if (reader.error > 0) {
        writer_process_mappings_free(&mappings);
        return -reader.error;
    }
    *ret_mappings = mappings;
    return 0;
}

void writer_process_mappings_free(struct writer_process_mappings *mappings) {
    for (size_t i = 0; i < mappings->count; i++) free(mappings->list[i].path);
    free(mappings->list);
    *mappings = (struct writer_process_mappings){0};
}

static bool is_file(const char *path, const struct stat *status) {
    struct stat found;
    return stat(path, &found) == 0 && found.st_dev == status->st_dev && found.st_ino == status->st_ino;
}

/* On overlayfs and btrfs, maps and stat tell different devices for one file. Then the kernel's link to the mapped
 * file decides, or the path as the process sees it. */
bool writer_process_maps_file(
    int pid, const struct writer_process_mapping *mapping, const struct stat *status) {
    if (mapping->device == status->st_dev && mapping->inode == status->st_ino) return true;

    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start, mapping->end);
    if (is_file(path, status)) return true;

    snprintf(path, sizeof path, "/proc/%d/root%s", pid, mapping->path);
    return !mapping->deleted && is_file(path, status);
}

/* 1: the process has the file mapped, 0: it has not; or a negative errno. */
static int writes_file(int pid, const struct stat *status) {
    struct writer_process_mappings mappings = {0};
    int r = writer_process_mappings_read(pid, &mappings);
    if (r < 0) return r;
    for (size_t i = 0; i < mappings.count && r == 0; i++)
        r = writer_process_maps_file(pid, &mappings.list[i], status);
    writer_process_mappings_free(&mappings);
    return r;
}

bool writer_process_has_number(int pid, int inner_pid) {
    FILE *file = open_of_process(pid, "status");
    if (!file) return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "NSpid:", 6) != 0) continue;
        char *at = line + 6, *end;
        for (long number = strtol(at, &end, 10); end != at && !found; number = strtol(at, &end, 10)) {
            found = number == inner_pid;
            at = end;
        }
        break;
    }
    fclose(file);
    return found;
}

bool writer_process_is_called(int pid, const char *name) {
    char line[64] = "";
    FILE *file = open_of_process(pid, "comm");
    bool read = file && fgets(line, sizeof line, file);
    if (file) fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return read && strcmp(line, name) == 0;
}

int writer_process_find(int recorded_pid, const struct stat *status) {
    if (recorded_pid <= 0) return 0;
    int direct = writes_file(recorded_pid, status);
    if (direct == 1) return recorded_pid;

    int writer = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && writer == 0 && (entry = readdir(folder));) {
        int pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid > 0 && pid != recorded_pid && writer_process_has_number(pid, recorded_pid) &&
            writes_file(pid, status) == 1)
            writer = pid;
    }
    if (folder) closedir(folder);
    return writer == 0 && (direct == -EACCES || direct == -EPERM) ? -EACCES : writer;
}

static bool starts_at_any(
    const struct writer_process_mappings *mappings, int pid, const struct stat *status, uint64_t start) {
    for (size_t i = 0; i < mappings->count; i++)
        if (mappings->list[i].start == start)
            return writer_process_maps_file(pid, &mappings->list[i], status);
    return false;
}

uint64_t writer_process_resident(int pid, const struct stat *status) {
    struct writer_process_mappings mappings = {0};
    if (writer_process_mappings_read(pid, &mappings) < 0) return 0;

    uint64_t resident = 0;
    FILE *file = open_of_process(pid, "smaps");
    char *line = NULL;
    size_t line_size = 0;
    bool ours = false;
    while (file && getline(&line, &line_size, file) >= 0) {
        uint64_t start, end, kilobytes;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
            ours = starts_at_any(&mappings, pid, status, start);
        else if (ours && sscanf(line, "Rss: %" SCNu64 " kB", &kilobytes) == 1)
            resident += kilobytes * 1024;
    }
    free(line);
    if (file) fclose(file);
    writer_process_mappings_free(&mappings);
    return resident;
}
