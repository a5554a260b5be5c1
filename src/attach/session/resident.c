#include "attach/session/resident.h"

#include "attach/bpf/target_access.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

bool resident_anonymous(int pid, uint64_t *ret_bytes) {
    char path[64], line[256];
    if (target_access_check(pid, NULL) < 0) {
        errno = EACCES;
        return false;
    }
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    uint64_t kilobytes;
    bool found = false;
    while (!found && fgets(line, sizeof line, file))
        found = sscanf(line, "Anonymous: %" SCNu64 " kB", &kilobytes) == 1;
    fclose(file);
    if (found) *ret_bytes = kilobytes * 1024;
    return found;
}
