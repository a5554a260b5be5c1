/* What /proc tells about the process that writes a recording: which it is, and what it spends on it. */
#ifndef MALLOSCOPE_MODEL_WRITER_PROCESS_H
#define MALLOSCOPE_MODEL_WRITER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A file that a process has mapped shared and writable: what a recording looks like from outside. */
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

/* Whether this is the name of its program. */
bool writer_process_is_called(int pid, const char *name);

/* The process that has the file mapped for writing, where `recorded_pid` is its number as it knew it itself:
 * in a container that number differs from ours. Returns 0 if there is none, -EACCES if one exists by that
 * number but may not be inspected. */
int writer_process_find(int recorded_pid, const struct stat *status);

/* Whether `inner_pid` is one of the numbers that process `pid` has, in our namespace or one below. */
bool writer_process_has_number(int pid, int inner_pid);

/* Bytes resident in the process's shared mappings of that file; 0 if it cannot be told. */
uint64_t writer_process_resident(int pid, const struct stat *status);

#endif
