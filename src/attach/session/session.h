/* A session: attached to a running program, and to the children it starts from now on if that is wanted.
 * Probes tell of allocations (bpf/), their stacks are walked here (remote/), and a collector records them,
 * one for each process. */
#ifndef MALLOSCOPE_ATTACH_SESSION_SESSION_H
#define MALLOSCOPE_ATTACH_SESSION_SESSION_H

#include "attach/bpf/probe.h"
#include "attach/session/collector.h"

#include <stdbool.h>
#include <stdint.h>

struct session;

struct session_options {
    int pid;
    bool follow; /* children too */
    uint32_t depth;
    uint64_t size_max;
    bool replace;
    struct probe_options probes;
    /* The name of a process's recording; the caller of it frees. */
    char *(*path_of)(void *context, int pid);
    void *context;
};

int session_open(const struct session_options *options, struct session **ret_session,
    enum probe_trouble *ret_trouble, struct problem *problem);

/* Takes what has come within the next `timeout_ms`. Returns 0 or a negative errno (-EINTR: a signal). */
int session_poll(struct session *session, int timeout_ms);

/* The figures begin now. */
void session_set_baseline(struct session *session);

struct session_status {
    double live_bytes, peak_bytes;
    uint64_t samples, frees;
    uint64_t processes;    /* that are recorded now */
    uint64_t recordings;   /* made so far */
    bool target_ended;     /* the program that was attached to is gone */
    bool target_changed;   /* it became another program by exec */
    uint64_t not_followed; /* children that could not be: no allocator was found in time */
    uint64_t lost;         /* allocations that should have been recorded and were not */
    uint64_t older_frees;  /* of blocks that were allocated before, or were not sampled */
    double probe_seconds;  /* of processor time that the probes took in the program, estimated */
};
struct session_status session_status(struct session *session);

/* Of the program that was attached to. */
const char *session_path(const struct session *session);
enum probe_method session_method(const struct session *session);

/* Allocations of that program that are not seen; NULL when it has ended. */
const struct plan_note *session_warnings(const struct session *session, size_t *ret_count);

/* Detaches: the program runs on as before. Takes what has come until then, and finishes the recordings. The
 * status is final from then on. */
void session_detach(struct session *session);

/* After session_detach. */
void session_close(struct session *session);

#endif
