/* The cookie: what the kernel side has to know about a probe, in the 64 bits that the kernel hands to the BPF
 * program at each hit of that probe.
 *
 *     bits  0–4   register that holds the size; COOKIE_NONE: the function frees
 *           5–9   register that holds a factor of the size                          calloc, reallocarray
 *          10–14  register that holds the old block                                 realloc, free
 *          15–19  register that holds the address where the result will be stored   posix_memalign
 *          20     the function may call another probed function: its return is caught also if it is not sampled.
 *                 Of a function that frees: it may call another one that frees
 *          21     a C++ exception may leave the function
 *          22–23  the last two bits of the process's exec_count (event.h) when the probe was made. The kernel may
 *                 still be removing the probes of the former program while the next program runs: hits of these
 *                 are ignored.
 *          24–43  ┐ how many bytes before and after the probe belong to the allocator's own code: a free that is
 *          44–63  ┘ called from there is the allocator's own and not the program's
 *
 * A register is named by its place in the kernel's struct pt_regs. */
#ifndef MALLOSCOPE_ATTACH_BPF_COOKIE_H
#define MALLOSCOPE_ATTACH_BPF_COOKIE_H

#include <linux/types.h>

#define COOKIE_NONE 31

enum {
    COOKIE_SIZE = 0,
    COOKIE_COUNT = 5,
    COOKIE_OLD = 10,
    COOKIE_OUT = 15,
    COOKIE_EXECS = 22,
    COOKIE_BEFORE = 24,
    COOKIE_BEHIND = 44
};

#define COOKIE_NESTS     (1ULL << 20)
#define COOKIE_THROWS    (1ULL << 21)
#define COOKIE_EXECS_MAX 3ULL
#define COOKIE_REACH_MAX ((1ULL << 20) - 1)

static inline __u64 cookie_register(__u64 cookie, int field) {
    return (cookie >> field) & 31;
}

static inline __u64 cookie_reach(__u64 cookie, int field) {
    return (cookie >> field) & COOKIE_REACH_MAX;
}

#endif
