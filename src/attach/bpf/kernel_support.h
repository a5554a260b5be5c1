/* Which ways to place probes the running kernel offers, or why there is none. */
#ifndef MALLOSCOPE_ATTACH_BPF_KERNEL_SUPPORT_H
#define MALLOSCOPE_ATTACH_BPF_KERNEL_SUPPORT_H

#include "base/problem.h"

#include <stdbool.h>

/* How probes are put into a program, best first. */
enum probe_method {
    METHOD_BEST,
    /* A session link for each file: the program decides at each call whether the return is caught (Linux 6.13). */
    METHOD_SESSION,
    /* A multi link for all calls of a file, another for all returns (6.6; 6.10 for a correct filter by process). */
    METHOD_MULTI,
    /* A perf event for each probe (5.15). Needs CAP_SYS_ADMIN. */
    METHOD_PERF,
};

enum probe_trouble {
    PROBE_FINE,
    PROBE_NO_PERMISSION, /* capabilities are missing */
    PROBE_NOT_ROOT,      /* the kernel only has a method that takes CAP_SYS_ADMIN */
    PROBE_LOCKDOWN,      /* the kernel is locked down */
    PROBE_NO_BPF,        /* eBPF is not built into this kernel, or a sandbox hides it */
    PROBE_NO_BTF,        /* the kernel was built without a description of its types (BTF) */
    PROBE_KERNEL_TOO_OLD,
    PROBE_NO_UPROBES, /* uprobes are not built into this kernel */
    PROBE_NO_MEMORY,  /* the kernel has no memory for the tables */
    PROBE_OTHER,
};

/* Finds the best method by trying each. If there is none, `problem` explains it and `*ret_trouble` names the
 * kind. */
int kernel_support_find(
    enum probe_method *ret_method, enum probe_trouble *ret_trouble, struct problem *problem);

/* "session links", ... */
const char *kernel_support_method_name(enum probe_method method);

#endif
