/* A session: the tool is attached to a running program and, if that is wanted, to the child processes that the
 * program starts from then on. Probes in the kernel send events of allocations (attach/bpf), the copied stacks
 * are walked in the tool (attach/remote), and a collector for each process writes a recording. */
#ifndef MALLOSCOPE_ATTACH_SESSION_SESSION_H
#define MALLOSCOPE_ATTACH_SESSION_SESSION_H

#include "attach/bpf/probe.h"
#include "attach/session/collector.h"

#include <stdbool.h>
#include <stdint.h>

struct session;

struct session_options {
    int pid;
    bool follow;       /* child processes are recorded, too */
    uint32_t depth;    /* frames that are kept of a stack */
    uint64_t size_max; /* of a recording, in bytes */
    bool replace;      /* a file that exists is replaced */
    struct probe_options probes;
    /* Returns the path for a process's recording, which the session frees. */
    char *(*path_of)(void *context, int pid);
    void *context; /* handed to path_of */
};

/* Attaches. On failure `*ret_trouble` says whether probes are the reason, and of which kind it is. */
int session_open(const struct session_options *options, struct session **ret_session,
    enum probe_trouble *ret_trouble, struct problem *problem);

/* Waits for events, `timeout_ms` at most, and records them. Returns 0 or a negative errno (-EINTR: a signal). */
int session_poll(struct session *session, int timeout_ms);

/* Lets all figures begin now: what was allocated before is forgotten. */
void session_set_baseline(struct session *session);

struct session_status {
    double live_bytes; /* of all processes together, estimated */
    double peak_bytes; /* the largest peak of one process, estimated */
    uint64_t samples, frees;
    uint64_t processes;    /* that are recorded now, or are about to be */
    uint64_t recordings;   /* written so far */
    bool target_ended;     /* the program that was attached to has ended */
    bool target_changed;   /* it has become another program by exec */
    uint64_t not_followed; /* children without a recording: no allocator was found in them in time */
    uint64_t missed;       /* children without a recording: they ended before they had probes */
    uint64_t late;         /* children that ran for a while before they had probes */
    uint64_t lost;         /* allocations that should have been recorded and were not */
    double probe_seconds;  /* processor time that the probes took in the programs, estimated */
};
struct session_status session_status(struct session *session);

/* The recording of the program that was attached to. */
const char *session_path(const struct session *session);
enum probe_method session_method(const struct session *session);

/* The warnings of the plan for that program: allocations that are missed. NULL when the program has ended. */
const struct plan_note *session_warnings(const struct session *session, size_t *ret_count);

/* Detaches, records the events that were sent until then, and finishes the recordings. The programs run on as
 * before. The status does not change any more. */
void session_detach(struct session *session);

/* Frees the session, after session_detach. */
void session_close(struct session *session);

#endif
