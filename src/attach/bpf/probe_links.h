/* Links: what ties a program in the kernel to the places of a process where it is run.
 *
 * The kernel lets go of one only when no processor can be inside of it any more: that takes some 10 ms each.
 * So many are closed side by side, and those of processes that have ended behind the scenes, since the next
 * child may be waiting to be followed. */
#ifndef MALLOSCOPE_ATTACH_BPF_PROBE_LINKS_H
#define MALLOSCOPE_ATTACH_BPF_PROBE_LINKS_H

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

/* What is taken out first comes first: from then on nothing new is tracked. Frees are watched before and
 * after everything else, so that no tracked block can go unseen. */
enum link_group { GROUP_CALLS, GROUP_RETURNS, GROUP_FREES, GROUP_UNWINDS, GROUP_OTHERS, GROUPS };

struct probe_link {
    enum link_group group;
    pid_t pid;             /* 0: it serves all processes */
    int fd;                /* a multi link, or -1 */
    struct bpf_link *link; /* or one of libbpf's */
};

/* Sorted by group. */
struct probe_links {
    struct probe_link *links;
    size_t count;
};

/* Closes them, one group after the other, and frees the list. */
void probe_links_close(struct probe_links *list);

/* Closes lists in threads of its own. All zero is one with nothing to do. */
struct probe_links_closer {
    pthread_t *threads;
    size_t count;
};

void probe_links_close_later(struct probe_links_closer *closer, struct probe_links list);
/* Until all are closed. */
void probe_links_wait(struct probe_links_closer *closer);

#endif
