/* A running program, seen through /proc: which files are mapped into it, where, and its memory. */
#ifndef MALLOSCOPE_ATTACH_BPF_TARGET_H
#define MALLOSCOPE_ATTACH_BPF_TARGET_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target_segment {
    uint64_t start, end, file_offset;
};

/* A file that the program runs code from. */
struct target_file {
    char *path;      /* as the program knows it */
    char *open_path; /* as the tool can open it, also from another mount namespace; NULL: it cannot */
    uint64_t device, inode;
    bool is_program; /* itself, not a library */
    bool has_code;
    struct target_segment *segments; /* all mappings, with or without code */
    size_t segment_count;
};

struct target {
    pid_t pid;
    char *name; /* of the program, without folders */
    int memory; /* /proc/PID/mem, or -1 */
    struct target_file *files;
    size_t file_count;
};

/* Refuses what cannot be attached to: no such process, a thread, a zombie, a part of the kernel. */
int target_open(pid_t pid, struct target *ret_target, struct problem *problem);
void target_close(struct target *target);

/* The file that is mapped at `address`, with the offset of that byte in it. NULL if there is none. */
const struct target_file *target_find(const struct target *target, uint64_t address, uint64_t *ret_offset);

/* Where the byte at `file_offset` is mapped; 0 if it is not. */
uint64_t target_address(const struct target_file *file, uint64_t file_offset);

/* One word of the program's memory. */
bool target_read(const struct target *target, uint64_t address, uint64_t *ret_word);

#endif
