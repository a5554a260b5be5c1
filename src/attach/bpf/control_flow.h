/* Where a function's code leads: which other functions it calls, and whether it can end without calling them.
 *
 * It follows all direct jumps and calls, a few calls deep. That answers two questions about the functions of
 * an allocator. Does every way through `operator delete` lead to `free`? Then a probe on `free` sees it all,
 * and one on both would count twice. Can a way through `realloc` lead to `malloc`? Then that inner call is to
 * be ignored. What the walk cannot see (jumps through registers) it takes for a way out. */
#ifndef MALLOSCOPE_ATTACH_BPF_CONTROL_FLOW_H
#define MALLOSCOPE_ATTACH_BPF_CONTROL_FLOW_H

#include "attach/bpf/elf_code.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions that are looked for: those of the same file by address, imported ones by name. */
struct control_flow_goal {
    bool (*is_address)(const void *context, uint64_t address);
    bool (*is_name)(const void *context, const char *name);
    const void *context;
    bool stops_at_return; /* nothing more is asked for once a way to the end was found */
};

struct control_flow_ways {
    bool reaches;             /* some way leads to one of them */
    bool returns;             /* some way leads to the end without */
    uint64_t reached_address; /* one that is reached: by address, or */
    const char *reached_name; /* by name */
};

/* Follows the code from `start`, through calls up to `depth` deep. */
struct control_flow_ways control_flow_follow(
    const struct elf_code *elf, uint64_t start, int depth, const struct control_flow_goal *goal);

/* Whether a jump from anywhere in the function at `start` leads to an address in (start, last]. True also if
 * not all of its code can be decoded. */
bool control_flow_jumps_into(const struct elf_code *elf, uint64_t start, uint64_t size, uint64_t last);

#endif
