/* The keys and values of the BPF maps, the tables in which the kernel side keeps its state. The tool reads some
 * of them. heap.bpf.c and threads.bpf.h declare the maps. */
#ifndef MALLOSCOPE_ATTACH_BPF_BPF_MAPS_H
#define MALLOSCOPE_ATTACH_BPF_BPF_MAPS_H

#include "event.h"

/* A call of an allocation function whose return is to be caught: the pending call of a thread. */
struct call {
    __u64 sp; /* the address of its return address on the stack; 0: the thread has no pending call */
    __u64 return_address; /* what stood there before the kernel put its own address there */
    __u64 size;
    __u64 out;         /* the address where the new pointer will be stored; 0: it is returned */
    __u64 old_address; /* of realloc: the old block, which was removed from `live`; 0: none */
    __u64 old_block;   /* its number; 0: it was not tracked */
    __u64 sampled;     /* whether the new block will be tracked */
};

struct thread {
    struct thread_figures figures;
    __u64 countdown;  /* bytes until the next sample */
    __u64 stack_end;  /* no frame lies at or above this address */
    __u64 next_block; /* the number of the next tracked block of this thread */
    __u32 pid, tid, exec_count, unused;
    /* The last free, if its function may call another one that frees: the block, and the address of the return
     * address. Forgotten when the thread allocates. 0: none. */
    __u64 freed, freed_sp;
    struct call call;
};

/* The key of a tracked block in the map `live`. */
struct live_key {
    __u64 address;
    __u32 pid, exec_count;
};

/* A free that found the ring buffer full and waits in the queue `late_frees`. */
struct late_free {
    __u64 block, time;
};

#endif
