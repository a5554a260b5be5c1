/* What the kernel side tells the tool, through the ring buffer. Shared by heap.bpf.c and the tool.
 *
 * A tracked block has a number of its own, `block`, that is never used twice. Follow blocks by that number
 * and not by their address: a free that found the ring full is told later, when the address may already
 * belong to another block.
 *
 *     allocation   a sampled block was given out. If it came from realloc, the tracked block that it took
 *                  the place of ends with the same event (`ended`).
 *     free         a tracked block ended: freed, or resized without the new one being sampled.
 *     thread       first allocation or free of a thread
 *     thread end   with the thread's exact figures
 *     fork         the target started a child process. One that shares the target's memory (vfork) must not
 *                  be attached to before it calls exec: its probes would be hit by the target too.
 *     exec         the target runs another program from here on: all blocks told so far are gone
 *     process end  the last thread of the target is gone
 *     modules      the target loaded or closed libraries
 *
 * All times are nanoseconds of CLOCK_MONOTONIC, process and thread numbers those that the tool's own /proc
 * shows. */
#ifndef MALLOSCOPE_ATTACH_BPF_EVENT_H
#define MALLOSCOPE_ATTACH_BPF_EVENT_H

#include <linux/types.h>

enum event_kind {
    EVENT_ALLOCATION = 1,
    EVENT_FREE,
    EVENT_THREAD,
    EVENT_THREAD_END,
    EVENT_FORK,
    EVENT_EXEC,
    EVENT_PROCESS_END,
    EVENT_MODULES,
};

struct event {
    __u32 kind;
    __u32 pid, tid;
    __u32 exec_count; /* counts the process's execs: 0 for the program that was attached to */
    __u64 time;
};

enum event_stack_kind {
    EVENT_STACK_COPY = 1, /* the bytes of the stack from `sp` up */
    EVENT_STACK_FRAMES,   /* return addresses found by frame pointers, the leaf first; the first is `ip` */
};

enum event_stack_flag {
    EVENT_STACK_CUT = 1 << 0,   /* the stack goes on behind what was copied */
    EVENT_STACK_HOLES = 1 << 1, /* parts that have no memory (yet) are zero, or missing at the end */
};

/* The registers of the caller just after the call: what an unwinder starts from. `ip` is a return address. */
struct event_registers {
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
};

struct event_allocation {
    struct event event;
    __u64 block;
    __u64 address;
    __u64 size;     /* as asked for */
    __u64 ended;    /* realloc: the tracked block that this one took the place of, or 0 */
    __u64 replaced; /* a tracked block at the same address whose free was not seen, or 0: it is gone */
    struct event_registers registers;
    __u16 stack_kind;  /* enum event_stack_kind */
    __u16 stack_flags; /* enum event_stack_flag */
    __u32 stack_size;  /* bytes of `stack` */
    __u8 stack[];
};

/* `event.pid`, `tid` and `exec_count` are 0 if it is told late, because the ring was full. */
struct event_free {
    struct event event;
    __u64 block;
};

/* What a thread allocated, sampled or not. */
struct thread_figures {
    __u64 bytes, allocations, frees;
};

struct event_thread {
    struct event event;
    char name[16];
    struct thread_figures figures; /* zero when the thread is new */
};

struct event_fork {
    struct event event;
    __u32 child;
    __u32 shares_memory;
};

/* Counted in the kernel, summed by probe_read_counters. */
enum probe_counter {
    COUNT_ENTRIES,       /* times a probe was hit: what the target pays for */
    COUNT_RETURNS,       /* times the return of a function was caught */
    COUNT_SAMPLED,       /* allocations told */
    COUNT_FREES,         /* frees of anything but NULL */
    COUNT_FREES_UNKNOWN, /* of those, frees of blocks that are not tracked: older than the attach, or not
                            sampled */
    COUNT_FAILED,        /* allocations that failed, as far as the return was awaited */
    COUNT_NESTED,        /* calls inside another allocation function, not counted again */
    COUNT_LOST_RING,     /* sampled allocations not told: the ring was full */
    COUNT_LOST_RING_BYTES,
    COUNT_LOST_LIVE, /* sampled allocations not told: the table of tracked blocks was full */
    COUNT_LOST_LIVE_BYTES,
    COUNT_LOST_CALLS,      /* calls that never returned, or not where they were awaited */
    COUNT_LOST_THREADS,    /* calls of threads that found no room in the thread table */
    COUNT_LOST_NOTICES,    /* events other than allocations and frees not told: the ring was full */
    COUNT_LATE_FREES,      /* frees told late, because the ring was full: nothing is lost */
    COUNT_FORGOTTEN_FREES, /* frees that could not be told at all; their blocks look live */
    COUNT_REPLACED,        /* tracked blocks whose free was not seen, noticed when their address came back */
    COUNT_STACKS_CUT,
    COUNT_STACK_HOLES,
    COUNT_FOREIGN, /* hits by processes that share the target's memory (vfork) */
    COUNTERS,
};

#endif
