#include "model/duplicate_dumps.h"

#include "base/memory.h"
#include "base/open_regular.h"
#include "core/recording.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Which process a recording is of, and when it ends. */
struct identity {
    char *path;
    size_t place;  /* in the list */
    bool is_known; /* it is a recording of this version; the fields below are filled in */
    bool is_copy;  /* it is a dump, or a copy of a running program */
    int32_t pid;
    uint64_t start_realtime, start_monotonic, last_event;
};

static struct identity identity_of(char *path, size_t place) {
    struct identity identity = {.path = path, .place = place};
    struct recording_header header;
    int file = open_regular(AT_FDCWD, path, 0);
    if (file < 0) return identity;
    bool whole = pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header;
    close(file);
    if (!whole || memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0) return identity;
    identity.is_known = header.version == RECORDING_VERSION;
    identity.is_copy = header.flags & RECORDING_SNAPSHOT;
    identity.pid = header.pid;
    identity.start_realtime = header.start_realtime;
    identity.start_monotonic = header.start_monotonic;
    identity.last_event = header.last_event;
    return identity;
}

static int compare_processes(const struct identity *a, const struct identity *b) {
    if (a->is_known != b->is_known) return a->is_known ? 1 : -1;
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->start_realtime != b->start_realtime) return a->start_realtime < b->start_realtime ? -1 : 1;
    return (a->start_monotonic > b->start_monotonic) - (a->start_monotonic < b->start_monotonic);
}

/* Puts the recordings of one process side by side: its own recording first, then dumps, the latest first. */
static int by_process(const void *a, const void *b) {
    const struct identity *x = a, *y = b;
    int order = compare_processes(x, y);
    if (order) return order;
    if (x->is_copy != y->is_copy) return x->is_copy ? 1 : -1;
    return (x->last_event < y->last_event) - (x->last_event > y->last_event);
}

static int by_place(const void *a, const void *b) {
    size_t x = ((const struct identity *)a)->place, y = ((const struct identity *)b)->place;
    return (x > y) - (x < y);
}

size_t duplicate_dumps_leave_out(char **paths, size_t count) {
    if (count == 0) return 0;
    struct identity *found = memory_allocate_array(count, sizeof *found);
    for (size_t i = 0; i < count; i++) found[i] = identity_of(paths[i], i);
    qsort(found, count, sizeof *found, by_process);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct identity *former = kept ? &found[kept - 1] : NULL;
        bool is_other = !former || !found[i].is_known || compare_processes(former, &found[i]) != 0;
        if (is_other || !found[i].is_copy)
            found[kept++] = found[i];
        else
            free(found[i].path);
    }
    qsort(found, kept, sizeof *found, by_place);
    for (size_t i = 0; i < kept; i++) paths[i] = found[i].path;
    free(found);
    return kept;
}
