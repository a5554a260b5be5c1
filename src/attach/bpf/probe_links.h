/* Links: a link ties a BPF program to the places of a process where it runs, and holds it there until it is
 * closed.
 *
 * The kernel closes a link only when no processor can be inside the program any more, which takes some 10 ms. So
 * several links are closed at the same time by several threads. The links of a process that has ended are closed
 * in the background, because the next child process may be waiting to be attached to. */
#ifndef MALLOSCOPE_ATTACH_BPF_PROBE_LINKS_H
#define MALLOSCOPE_ATTACH_BPF_PROBE_LINKS_H

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

/* The groups in the order in which they are closed. Calls and returns come first: from then on no new block is
 * tracked. Frees are attached before them and closed after them, so that no free of a tracked block is missed. */
enum link_group { GROUP_CALLS, GROUP_RETURNS, GROUP_FREES, GROUP_UNWINDS, GROUP_OTHERS, GROUPS };

struct probe_link {
    enum link_group group;
    pid_t pid;             /* 0: it serves all processes */
    int fd;                /* descriptor of a link that was made by uprobe_link_create, or -1 */
    struct bpf_link *link; /* a link that was made by libbpf, or NULL */
};

/* Sorted by group. */
struct probe_links {
    struct probe_link *links;
    size_t count;
};

/* Closes the links, one group after the other, and frees the list. Returns when all are closed. */
void probe_links_close(struct probe_links *list);

/* Closes lists in the background, each in a thread of its own. All zero is a closer with nothing to do. */
struct probe_links_closer {
    pthread_t *threads;
    size_t count;
};

void probe_links_close_later(struct probe_links_closer *closer, struct probe_links list);
/* Returns when all lists are closed. */
void probe_links_wait(struct probe_links_closer *closer);

#endif
