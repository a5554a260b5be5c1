/* The probe plan: where probes go in a running program so that each allocation is counted exactly once.
 *
 * A program may contain several allocators, one built on another (C++'s operators on the C library's malloc) or
 * side by side (jemalloc for the Rust part, the C library for the C part). The plan lists the functions of all
 * allocators that the program uses. It leaves out a function that always calls another listed one: the probe on
 * that one suffices. It marks a function that sometimes calls another listed one: the inner call must not be
 * counted again.
 *
 * The plan is made from the symbol tables and the machine code of the mapped files, and from the addresses that
 * the dynamic linker has put into their slots. Nothing in the program is changed. */
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
    char *path;     /* by which the tool can open the file */
    char *module;   /* the file's path as the program sees it */
    char *function; /* name for people */
    enum function_role role;
    uint64_t file_offset; /* of the probed instruction */
    uint64_t distance;    /* in bytes, from the function's entry to that instruction */
    bool catches_return;
    bool nests;      /* may call another probed function */
    bool throws;     /* a C++ exception may leave it */
    uint64_t cookie; /* cookie.h; without the number of execs */
    struct probe_point point;
    size_t layer;           /* index in `layers`; SIZE_MAX if the function is not an allocator's */
    uint64_t device, inode; /* of the file */
};

/* An allocator whose functions are probed. */
struct plan_layer {
    char *name; /* "glibc (libc.so.6)" */
    char *why;  /* "malloc of 5 modules is bound to it" */
};

/* Something that is not probed, or only in part, and why. */
struct plan_note {
    char *what, *why;
    bool is_doubt; /* it is possible, but not certain, that allocations are missed */
};

struct plan {
    pid_t pid;
    char *program;
    struct plan_layer *layers;
    size_t layer_count;
    struct plan_probe *probes;
    size_t probe_count;
    size_t attached;           /* probe_attach has put probes[0] to probes[attached - 1] in place */
    struct plan_note *refused; /* functions that look like an allocator's, but are not probed */
    size_t refused_count;
    struct plan_note *warnings; /* allocations that will be missed */
    size_t warning_count;
    uint64_t *known_files; /* pairs of device and inode: the files that the plan was made from */
    size_t known_count;    /* pairs */
};

/* Fails if there is no such process, if the tool may not look into it, or if it contains no known allocator. */
int plan_make(pid_t pid, struct plan **ret_plan, struct problem *problem);
void plan_free(struct plan *plan);

/* The plan of a child that the process has just forked: a copy, which takes a small part of the time of
 * plan_make. */
struct plan *plan_of_child(const struct plan *plan, pid_t child);

/* If the process has mapped files with code since the plan was made, adds probes for the allocators in them. The
 * probes that the plan has already stay as they are. */
int plan_extend(struct plan *plan, struct problem *problem);

/* Whether a C++ exception may leave one of the probed functions: an operator new that is not built on malloc. */
bool plan_throws(const struct plan *plan);

/* Whether allocations are certainly missed: a warning says so that is not just a doubt. */
bool plan_misses(const struct plan *plan);

/* Adds a warning, with copies of both texts. */
void plan_warn(struct plan *plan, const char *what, const char *why);

/* Prints layers, probes and what was left out, for people. */
void plan_print(FILE *out, const struct plan *plan);

#endif
