/* What /proc tells about the process that writes a recording: which one it is, and how much memory it spends on it. */
#ifndef MALLOSCOPE_MODEL_WRITER_PROCESS_H
#define MALLOSCOPE_MODEL_WRITER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A file that a process has mapped shared and writable, as it has its recording. */
struct writer_process_mapping {
    uint64_t start, end;
    dev_t device;
    ino_t inode;
    bool deleted;
    char *path; /* as the process sees it, without " (deleted)" */
};

struct writer_process_mappings {
    struct writer_process_mapping *list;
    size_t count;
};

/* The shared writable file mappings of a process. Returns 0 or a negative errno: -ESRCH if there is no such
 * process, -EACCES if it may not be inspected. */
int writer_process_mappings_read(int pid, struct writer_process_mappings *ret_mappings);
void writer_process_mappings_free(struct writer_process_mappings *mappings);

/* Whether `mapping` of process `pid` shows the file that `status` describes. */
bool writer_process_maps_file(
    int pid, const struct writer_process_mapping *mapping, const struct stat *status);

/* Whether the process runs a program of this name. */
bool writer_process_is_called(int pid, const char *name);

/* The number of the process that has the file mapped for writing. `recorded_pid` is the number as the process
 * itself saw it, which in a container differs from ours. 0: there is no such process. -EACCES: a process with that
 * number exists, but may not be inspected. */
int writer_process_find(int recorded_pid, const struct stat *status);

/* Whether `inner_pid` is a number of process `pid`, in our PID namespace or in one below it. */
bool writer_process_has_number(int pid, int inner_pid);

/* How many bytes of the process's shared mappings of that file are resident. 0: not known. */
uint64_t writer_process_resident(int pid, const struct stat *status);

#endif
