/* The events that the kernel side sends to the tool through the ring buffer. Shared by heap.bpf.c and the tool.
 *
 * A tracked block is a sampled block whose allocation was sent. It has a number, `block`, that is never used
 * twice. The tool must follow blocks by that number and not by their address: a free that finds the ring buffer
 * full is sent later, when the address may already belong to another block.
 *
 *     allocation   A sampled block was allocated. If it comes from realloc, the tracked block that it replaces
 *                  ends with the same event (`ended`).
 *     free         A tracked block ended: it was freed, or resized to a block that is not sampled.
 *     thread       A thread allocated or freed for the first time.
 *     thread end   A thread ended. Carries the thread's exact figures.
 *     fork         The target started a child process. A child that shares the target's memory (vfork) must not be
 *                  attached to before it calls exec: the target, too, would hit its probes.
 *     exec         The target runs another program from here on: all blocks sent so far are gone.
 *     process end  The last thread of the target ended.
 *     modules      The target loaded or closed libraries.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. Process and thread numbers are those of the tool's own pid
 * namespace. */
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
    __u32 exec_count; /* how often the process has called exec: tells the programs that it ran apart */
    __u64 time;
};

enum event_stack_kind {
    EVENT_STACK_COPY = 1, /* the bytes of the stack from the stack pointer upwards */
    EVENT_STACK_FRAMES, /* the return addresses that frame pointers lead to, leaf first; the first is `ip` */
};

enum event_stack_flag {
    EVENT_STACK_CUT = 1 << 0, /* the stack is larger than the copy */
    EVENT_STACK_HOLES =
        1 << 1, /* parts of the stack could not be read: they are zeros, or missing at the end */
};

/* The registers of the caller just after the call, from which the unwinder starts. `ip` is a return address. */
struct event_registers {
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
};

struct event_allocation {
    struct event event;
    __u64 block;
    __u64 address;
    __u64 size;     /* as asked for */
    __u64 ended;    /* of realloc: the number of the tracked block that this one replaces, or 0 */
    __u64 replaced; /* the number of a tracked block at the same address whose free was missed, or 0 */
    struct event_registers registers;
    __u16 stack_kind;  /* enum event_stack_kind */
    __u16 stack_flags; /* enum event_stack_flag */
    __u32 stack_size;  /* bytes of `stack` */
    __u8 stack[];
};

/* `event.pid`, `tid` and `exec_count` are 0 if the event was delayed because the ring buffer was full. */
struct event_free {
    struct event event;
    __u64 block;
};

/* What a thread has allocated and freed, sampled or not. */
struct thread_figures {
    __u64 bytes, allocations;
    __u64 frees;         /* of anything but NULL, and blocks that realloc has replaced */
    __u64 frees_unknown; /* those of them whose block is not tracked: older than the attach, or not sampled */
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

/* Counters of the kernel side, which probe_read_counters adds up over all processors. */
enum probe_counter {
    COUNT_ENTRIES,       /* hits of probes on calls: what the target pays for */
    COUNT_RETURNS,       /* returns that were caught */
    COUNT_SAMPLED,       /* allocations that were sent */
    COUNT_FREES,         /* frees of anything but NULL */
    COUNT_FREES_UNKNOWN, /* those of them whose block is not tracked: older than the attach, or not sampled */
    COUNT_FAILED,        /* allocations that failed, as far as their return was caught */
    COUNT_NESTED,        /* calls inside another allocation function, which are not counted again */
    COUNT_LOST_RING,     /* sampled allocations that were not sent because the ring buffer was full */
    COUNT_LOST_RING_BYTES, /* their bytes */
    COUNT_LOST_LIVE, /* sampled allocations that were not sent because the table of tracked blocks was full */
    COUNT_LOST_LIVE_BYTES, /* their bytes */
    COUNT_LOST_CALLS,      /* calls whose return was to be caught and was not */
    COUNT_LOST_THREADS,    /* calls of threads for which the thread table had no room */
    COUNT_LOST_NOTICES,    /* events other than allocations and frees that found the ring buffer full */
    COUNT_LOST_CHILDREN,   /* child processes whose fork event was one of these: they are not followed */
    COUNT_LATE_FREES,      /* frees that were delayed because the ring buffer was full: nothing is lost */
    COUNT_FORGOTTEN_FREES, /* frees that could not even be delayed: their blocks look live for ever */
    COUNT_REPLACED, /* tracked blocks whose free was missed; noticed when their address was allocated again */
    COUNT_STACKS_CUT,  /* stacks with EVENT_STACK_CUT */
    COUNT_STACK_HOLES, /* stacks with EVENT_STACK_HOLES */
    COUNT_FOREIGN, /* hits of threads whose process is not profiled: of a child in the target's memory (vfork) */
    COUNTERS,
};

#endif
