/* What the kernel side has to know about a probe, in the 64 bits that the kernel hands over with each hit.
 *
 *     bits  0–4   register that holds the size            NONE: the function frees
 *           5–9   register that holds a factor of it      calloc, reallocarray
 *          10–14  register that holds the old block       realloc, free
 *          15–19  register that holds where the result is stored   posix_memalign
 *          20     may call another probed function: its return is awaited even if it is not sampled
 *          21     may throw
 *          22–23  the last two bits of `exec_count` in struct event: for which program it was made. The kernel may
 *                 still be taking out the former program's probes while the next one runs.
 *          24–43  ┐ bytes before and behind the probe that are the allocator's own code:
 *          44–63  ┘ frees called from there are its own business
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
