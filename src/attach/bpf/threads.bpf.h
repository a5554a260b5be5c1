/* What the programs in the kernel share: threads and their calls, and counters. */
#ifndef MALLOSCOPE_ATTACH_BPF_THREADS_BPF_H
#define MALLOSCOPE_ATTACH_BPF_THREADS_BPF_H

#include "bpf_maps.h"
#include "kernel_types.bpf.h"

#define THREADS_MAX 65536

/* By the kernel's thread number. */
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

/* Whether the remembered call is still running: the kernel has put the address of its trampoline where the
 * return address was. */
static __always_inline bool call_is_open(const struct call *call, __u64 sp) {
    struct task_struct *task = (void *)bpf_get_current_task();
    struct mm_struct *mm = BPF_CORE_READ(task, mm);
    if (!bpf_core_field_exists(mm->uprobes_state)) return sp <= call->sp;
    __u64 word = 0, trampoline = BPF_CORE_READ(mm, uprobes_state.xol_area, vaddr);
    return bpf_probe_read_user(&word, sizeof word, (void *)call->sp) == 0 && word == trampoline;
}

#endif
