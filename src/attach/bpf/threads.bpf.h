/* What heap.bpf.c and exception.bpf.c share: the table of threads with their pending calls, and the counters. */
#ifndef MALLOSCOPE_ATTACH_BPF_THREADS_BPF_H
#define MALLOSCOPE_ATTACH_BPF_THREADS_BPF_H

#include "bpf_maps.h"
#include "kernel_types.bpf.h"

#define THREADS_MAX 65536

/* The key is the thread's number in the initial pid namespace. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, THREADS_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, struct thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64[COUNTERS]);
} counters SEC(".maps");

static __always_inline void count_by(enum probe_counter which, __u64 by) {
    __u32 zero = 0;
    __u64 *all = bpf_map_lookup_elem(&counters, &zero);
    if (all) __sync_fetch_and_add(&all[which], by);
}

static __always_inline void count(enum probe_counter which) {
    count_by(which, 1);
}

/* Whether the thread's pending call is still running. If it is, the kernel's trampoline address stands where the
 * return address was. In a kernel that does not show where its trampoline is, the call counts as running while
 * the stack pointer `sp` has not risen above the return address. */
static __always_inline bool call_is_open(const struct call *call, __u64 sp) {
    struct task_struct *task = (void *)bpf_get_current_task();
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    if (!bpf_core_field_exists(mm->uprobes_state)) return sp <= call->sp;
    __u64 word = 0, trampoline = BPF_CORE_READ(mm, uprobes_state.xol_area, vaddr);
    return bpf_probe_read_user(&word, sizeof word, (void *)call->sp) == 0 && word == trampoline;
}

#endif
