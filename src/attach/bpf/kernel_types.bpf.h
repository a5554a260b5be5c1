/* The few structures of the kernel that the BPF programs read, each with the few fields that are needed. The
 * loader finds the offsets of the fields in the type information of the running kernel, by their names (CO-RE).
 * So the other fields need not be declared, and no kernel headers are needed. */
#ifndef MALLOSCOPE_ATTACH_BPF_KERNEL_TYPES_BPF_H
#define MALLOSCOPE_ATTACH_BPF_KERNEL_TYPES_BPF_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
    int nr;
};

struct pid {
    unsigned int level;
    struct upid numbers[1];
};

struct xol_area {
    unsigned long vaddr;
};

struct uprobes_state {
    struct xol_area *xol_area;
};

struct mm_struct {
    unsigned long start_stack;
    struct uprobes_state uprobes_state;
};

struct thread_struct {
    unsigned long fsbase;
};

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live;
};

struct task_struct {
    int pid;
    int tgid;
    struct mm_struct *mm;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    struct signal_struct *signal;
    struct thread_struct thread;
    char comm[16];
};

#pragma clang attribute pop

/* The context of a uprobe on x86-64: part of the kernel's binary interface. */
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags,
        sp, ss;
};

#endif
