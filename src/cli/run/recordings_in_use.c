#include "cli/run/recordings_in_use.h"

#include "base/memory.h"
#include "base/path.h"
#include "core/recording.h"
#include "model/writer_process.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct recorded {
    const char *name; /* the last part of its path */
    ino_t inode;
    int pid; /* of the process that wrote it, as that process saw it */
};

static struct recorded look_at(const char *path) {
    struct recorded recorded = {.name = path_last_part(path)};
    struct stat status;
    struct recording_header header;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return recorded;
    if (fstat(file, &status) == 0) recorded.inode = status.st_ino;
    if (pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header) recorded.pid = header.pid;
    close(file);
    return recorded;
}

/* Devices are not compared: on some file systems /proc and stat tell different ones. What looks like the same file is
 * taken for it. */
static bool is_mapped(const struct writer_process_mappings *mappings, const struct recorded *recorded) {
    for (size_t i = 0; i < mappings->count; i++)
        if (mappings->list[i].inode == recorded->inode ||
            strcmp(path_last_part(mappings->list[i].path), recorded->name) == 0)
            return true;
    return false;
}

static void note_process(int pid, const struct recorded *recorded, size_t count, bool *in_use) {
    struct writer_process_mappings mappings;
    if (writer_process_mappings_read(pid, &mappings) == 0) {
        for (size_t i = 0; i < count && mappings.count; i++)
            if (!in_use[i]) in_use[i] = is_mapped(&mappings, &recorded[i]);
        writer_process_mappings_free(&mappings);
        return;
    }
    /* A process that may not be inspected may be the one that writes it, if it has that number. */
    for (size_t i = 0; i < count; i++)
        if (!in_use[i]) in_use[i] = pid == recorded[i].pid || writer_process_has_number(pid, recorded[i].pid);
}

void recordings_in_use(char *const *paths, size_t count, bool *ret_in_use) {
    DIR *folder = opendir("/proc");
    memset(ret_in_use, !folder, count * sizeof *ret_in_use); /* without /proc, all may be in use */
    if (!folder) return;
    struct recorded *recorded = memory_allocate((count + 1) * sizeof *recorded);
    for (size_t i = 0; i < count; i++) recorded[i] = look_at(paths[i]);
    for (struct dirent *entry; (entry = readdir(folder));) {
        int pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid > 0 && pid != getpid()) note_process(pid, recorded, count, ret_in_use);
    }
    free(recorded);
    closedir(folder);
}
