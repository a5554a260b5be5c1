/* A running program as /proc shows it: which files with code are mapped into it, where, and its memory. Nothing is
 * changed in the program. */
#ifndef MALLOSCOPE_ATTACH_BPF_TARGET_H
#define MALLOSCOPE_ATTACH_BPF_TARGET_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One mapping of a file. */
struct target_segment {
    uint64_t start, end, file_offset;
};

/* A file that the program runs code from. */
struct target_file {
    char *path;             /* as the program sees it */
    char *open_path;        /* a path by which the tool can open it, or NULL: there is none */
    uint64_t device, inode; /* as /proc/PID/maps tells them */
    bool is_program;        /* the executable, not a library */
    bool has_code;
    struct target_segment *segments; /* all mappings of the file, also those that cannot be executed */
    size_t segment_count;
};

struct target {
    pid_t pid;
    char *name; /* of the program, without folders */
    int memory; /* descriptor of /proc/PID/mem, or -1: it may not be read */
    struct target_file *files;
    size_t file_count;
};

/* Fails with an explanation if there is no such process, or it is a thread, a zombie or a part of the kernel. */
int target_open(pid_t pid, struct target *ret_target, struct problem *problem);
void target_close(struct target *target);

/* The file that is mapped at `address` of the program, and the offset of that byte in it. NULL if none is. */
const struct target_file *target_find(const struct target *target, uint64_t address, uint64_t *ret_offset);

/* The address of the program at which the byte at `file_offset` is mapped; 0 if it is not mapped. */
uint64_t target_address(const struct target_file *file, uint64_t file_offset);

/* Reads one word of the program's memory. False if it cannot be read. */
bool target_read(const struct target *target, uint64_t address, uint64_t *ret_word);

#endif
