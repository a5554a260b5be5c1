/* A link that puts one BPF program on many uprobes of a file at once. libbpf 1.1, which Debian 12 has, offers no
 * call for it, so the system call is made here. */
#ifndef MALLOSCOPE_ATTACH_BPF_UPROBE_LINK_H
#define MALLOSCOPE_ATTACH_BPF_UPROBE_LINK_H

#include <stdbool.h>

/* The kernel's numbers for the two kinds of links, which older kernel headers do not name. */
#define ATTACH_UPROBE_MULTI   48u
#define ATTACH_UPROBE_SESSION 57u

struct uprobe_link {
    int program;                  /* descriptor of the BPF program */
    unsigned attach_type;         /* ATTACH_UPROBE_MULTI or ATTACH_UPROBE_SESSION */
    bool on_return;               /* of a multi link: runs at returns instead of calls */
    int pid;                      /* the process whose hits count */
    const char *path;             /* of the file */
    const unsigned long *offsets; /* in the file, one for each probe */
    const unsigned long *cookies; /* what the program is handed at a hit, one for each probe */
    unsigned count;
};

/* Returns a descriptor that holds the probes in place until it is closed, or a negative errno. */
int uprobe_link_create(const struct uprobe_link *link);

#endif
