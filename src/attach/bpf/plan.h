/* The probe plan: where probes go in a running program so that each allocation is seen once.
 *
 * A program may hold several allocators on top of each other (Rust's, C++'s, the C library's) or beside each
 * other (jemalloc for Rust, the C library for its C parts). The plan takes the functions of all that are in
 * use, leaves out those that do nothing but call another one of them, and says which ones may call another
 * one now and then. It is made from the mapped files' symbol tables, their code, and the addresses that the
 * dynamic linker has filled in. Nothing in the program is changed. */
#ifndef MALLOSCOPE_ATTACH_BPF_PLAN_H
#define MALLOSCOPE_ATTACH_BPF_PLAN_H

#include "attach/bpf/allocator_functions.h"
#include "attach/bpf/probe_point.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct plan_probe {
    char *path;     /* opens the file from where the tool is */
    char *module;   /* its path as the program knows it */
    char *function; /* linker's name */
    enum function_role role;
    uint64_t file_offset; /* of the probed instruction */
    uint64_t distance;    /* how far behind the function's entry that is */
    bool catches_return;
    bool nests; /* may call another probed function */
    bool throws;
    uint64_t cookie; /* cookie.h */
    struct probe_point point;
    size_t layer; /* in `layers`; SIZE_MAX for those that are not an allocator's */
    uint64_t device, inode;
};

/* An allocator whose functions are probed. */
struct plan_layer {
    char *name; /* "glibc (libc.so.6)" */
    char *why;
};

/* What is not probed, or only in part, and why. */
struct plan_note {
    char *what, *why;
    bool is_doubt; /* nothing need be missing */
};

struct plan {
    pid_t pid;
    char *program;
    struct plan_layer *layers;
    size_t layer_count;
    struct plan_probe *probes;
    size_t probe_count;
    size_t attached;           /* the first so many are in place (probe_attach) */
    struct plan_note *refused; /* functions that are left out */
    size_t refused_count;
    struct plan_note *warnings; /* allocations that will not be seen */
    size_t warning_count;
    uint64_t *known_files; /* device and inode of each file that was looked at */
    size_t known_count;
};

/* Fails if there is no such process, it may not be looked at, or no allocator in it is known. */
int plan_make(pid_t pid, struct plan **ret_plan, struct problem *problem);
void plan_free(struct plan *plan);

/* The plan of a child that the process has just forked, in a small part of the time that making it takes. */
struct plan *plan_of_child(const struct plan *plan, pid_t child);

/* Looks again whether files with code have been mapped since, and adds probes for the allocators in them.
 * Probes that are there stay as they are. */
int plan_extend(struct plan *plan, struct problem *problem);

/* Whether an exception may pass through one of its functions: C++ operators that are not built on malloc. */
bool plan_throws(const struct plan *plan);

/* Whether there are warnings that are no mere doubts. */
bool plan_misses(const struct plan *plan);

/* Adds to the warnings. */
void plan_warn(struct plan *plan, const char *what, const char *why);

/* For people: layers, probes, what was left out. */
void plan_print(FILE *out, const struct plan *plan);

#endif
