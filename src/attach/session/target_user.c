#include "attach/session/target_user.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

static bool shares_namespace(int pid, const char *kind) {
    char path[64], own[64];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kind);
    snprintf(own, sizeof own, "/proc/self/ns/%s", kind);
    return stat(path, &theirs) == 0 && stat(own, &ours) == 0 && theirs.st_dev == ours.st_dev &&
           theirs.st_ino == ours.st_ino;
}

static bool shares_root(int pid) {
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%d/root", pid);
    return stat(path, &theirs) == 0 && stat("/", &ours) == 0 && theirs.st_dev == ours.st_dev &&
           theirs.st_ino == ours.st_ino;
}

uint32_t target_user(int pid) {
    if (!shares_namespace(pid, "user") || !shares_namespace(pid, "mnt") || !shares_root(pid)) return 0;
    char path[64], line[256];
    unsigned real, effective, saved;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "Uid: %u %u %u", &real, &effective, &saved) == 3;
    if (file) fclose(file);
    return found && real == effective && real == saved ? real + 1 : 0;
}
