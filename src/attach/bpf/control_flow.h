/* The control flow of a function in machine code: whether its paths lead to a call of certain other functions,
 * the goal.
 *
 * All direct jumps, branches and calls are followed, up to a given depth of calls. That answers two questions
 * about the functions of an allocator:
 *
 *   - Does every path through `operator delete` call `free`? Then a probe on `free` sees all that `operator delete`
 *     frees, and probes on both would count each free twice.
 *   - Does some path through `realloc` call `malloc`? Then that inner call must be ignored while `realloc` runs.
 *
 * A jump through a register cannot be followed. It counts as a path that returns without having reached the
 * goal. */
#ifndef MALLOSCOPE_ATTACH_BPF_CONTROL_FLOW_H
#define MALLOSCOPE_ATTACH_BPF_CONTROL_FLOW_H

#include "attach/bpf/elf_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions that paths may lead to. Functions of the same file are recognised by address, imported ones by
 * name. */
struct control_flow_goal {
    bool (*is_address)(const void *context, uint64_t address);
    bool (*is_name)(const void *context, const char *name);
    const void *context;
    bool stops_at_return; /* the caller asks about every path: one that returns first settles the answer */
    bool visits_all;      /* the caller asks for `calls_others`: no path is left out */
};

struct control_flow_paths {
    bool reaches;             /* some path calls a function of the goal */
    bool returns;             /* some path returns without such a call */
    bool calls_others;        /* a function is called that is not of the goal, returns, and may do anything */
    uint64_t reached_address; /* the address of a function that is reached, if it is one of the same file */
    const char *reached_name; /* its name, if it is imported; else NULL */
};

/* Follows the paths from the entry of the function at `start`. A call of a function that is not of the goal is
 * followed up to `depth` calls deep; deeper ones are taken to return. */
struct control_flow_paths control_flow_follow(
    const struct elf_code *elf, uint64_t start, int depth, const struct control_flow_goal *goal);

/* Whether a direct jump or branch in the function [start, start + size) leads to an address in (start, last].
 * True also if not all of the function's code can be decoded. */
bool control_flow_jumps_into(const struct elf_code *elf, uint64_t start, uint64_t size, uint64_t last);

#endif
