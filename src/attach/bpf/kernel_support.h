/* What the running kernel can do, and why it cannot. */
#ifndef MALLOSCOPE_ATTACH_BPF_KERNEL_SUPPORT_H
#define MALLOSCOPE_ATTACH_BPF_KERNEL_SUPPORT_H

#include "base/problem.h"

#include <stdbool.h>

/* How probes are put into a program, best first. */
enum probe_method {
    METHOD_BEST,
    METHOD_SESSION, /* one link, and each call decides whether its return is caught (Linux 6.13) */
    METHOD_MULTI, /* one link for all calls of a file, one for all returns (6.6, or 6.10 to filter by process)
                   */
    METHOD_PERF,  /* a perf event for each (5.15); needs CAP_SYS_ADMIN */
};

enum probe_trouble {
    PROBE_FINE,
    PROBE_NO_PERMISSION, /* capabilities are missing */
    PROBE_LOCKDOWN,      /* the kernel is locked down */
    PROBE_NO_BPF,        /* not built into this kernel, or hidden by a sandbox */
    PROBE_NO_BTF,        /* the kernel does not describe its types */
    PROBE_KERNEL_TOO_OLD,
    PROBE_NO_UPROBES, /* not built into this kernel */
    PROBE_NO_MEMORY,  /* the tables do not fit */
    PROBE_OTHER,
};

/* Finds the best method, or why there is none. */
int kernel_support_find(
    enum probe_method *ret_method, enum probe_trouble *ret_trouble, struct problem *problem);

/* "session links", ... */
const char *kernel_support_method_name(enum probe_method method);

/* A link of many uprobes; libbpf 1.1 has no call for it. */
struct uprobe_link {
    int program;
    unsigned attach_type; /* ATTACH_UPROBE_MULTI or ATTACH_UPROBE_SESSION */
    bool on_return;
    int pid;
    const char *path;
    const unsigned long *offsets;
    const unsigned long *cookies;
    unsigned count;
};

#define ATTACH_UPROBE_MULTI   48u
#define ATTACH_UPROBE_SESSION 57u

/* Returns a descriptor that holds the probes in place until it is closed, or a negative errno. */
int uprobe_link_create(const struct uprobe_link *link);

#endif
