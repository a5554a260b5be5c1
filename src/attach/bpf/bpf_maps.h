/* What the kernel side remembers. The tool looks into it too. */
#ifndef MALLOSCOPE_ATTACH_BPF_BPF_MAPS_H
#define MALLOSCOPE_ATTACH_BPF_BPF_MAPS_H

#include "event.h"

/* A call of an allocation function that has to be seen to return. */
struct call {
    __u64 sp; /* where its return address lies; 0 = there is none */
    __u64 return_address;
    __u64 size;
    __u64 out;         /* where the pointer will be stored, or 0: it is returned */
    __u64 old_address; /* realloc: the block that was taken out of `live` */
    __u64 old_block;   /* its number, or 0: it was not tracked */
    __u64 sampled;
};

struct thread {
    struct thread_figures figures;
    __u64 countdown; /* bytes until the next sample */
    __u64 stack_end; /* no frame lies at or above it */
    __u64 next_block;
    __u32 pid, tid, exec_count, unused;
    struct call call;
};

/* The tracked blocks are found by this. */
struct live_key {
    __u64 address;
    __u32 pid, exec_count;
};

/* A free that found the ring full. */
struct late_free {
    __u64 block, time;
};

#endif
