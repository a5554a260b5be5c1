/* Probes in running programs, and the events that they send.
 *
 *     plan_make ──► probe_open ──► probe_attach ──► probe_poll … ──► probe_detach ──► probe_poll ──► probe_close
 *                                       ▲                │
 *                                       └─ plan_extend ◄─┘ EVENT_MODULES: the program has loaded libraries
 *
 * One set of probes serves several processes: the plan of each is attached to it. The events of all processes come
 * through one ring buffer. A set belongs to one thread. event.h describes the events and the counters. */
#ifndef MALLOSCOPE_ATTACH_BPF_PROBE_H
#define MALLOSCOPE_ATTACH_BPF_PROBE_H

#include "attach/bpf/event.h"
#include "attach/bpf/kernel_support.h"
#include "attach/bpf/plan.h"
#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

struct probe_set;

struct probe_options {
    uint64_t rate; /* sampling interval: mean bytes between samples, up to 4 GiB; 1 = every allocation */
    uint32_t stack_bytes; /* at most so much of a stack is copied; up to 64 KiB */
    bool frame_pointers; /* follow frame pointers in the kernel instead of copying the stack: cheaper, but the
                             walk ends early in code that was compiled without them */
    uint32_t live_blocks; /* room for so many tracked blocks at once; about 110 bytes of kernel memory each */
    uint32_t ring_bytes;  /* size of the ring buffer, a power of two: holds the events not yet fetched */
    bool follow;          /* send events of child processes also before the child is attached to */
    enum probe_method method; /* METHOD_BEST, or the method to use even if the kernel has a better one */
};

/* rate 512 KiB, 16 KiB of stack, 1 M blocks, 1 MiB ring (the command asks for more: cli/command/attach.c). */
extern const struct probe_options probe_options_default;

/* Loads the programs of the kernel side. On failure `*ret_trouble` says of which kind it is. */
int probe_open(const struct probe_options *options, struct probe_set **ret_set,
    enum probe_trouble *ret_trouble, struct problem *problem);

/* Puts those probes of `plan` into its process that are not in place yet. The first call for a process also
 * begins to follow that process.
 *
 * Exceptions: while the kernel waits for the return of a function, the kernel has replaced the return address on
 * the stack by one of its own. A C++ exception that is thrown inside the function finds that address, and the
 * program is terminated. This concerns only an `operator new` that does not call malloc, when memory runs out. If
 * the kernel lets BPF programs write to user memory, exception.bpf.c restores the return address in time. If not,
 * such functions are probed only with METHOD_SESSION, only for sizes that the machine's memory could hold, and
 * only if no limit is set on the process's memory; where that leaves a function out, a warning is added to the
 * plan. */
int probe_attach(struct probe_set *set, struct plan *plan, struct problem *problem);

enum probe_method probe_method(const struct probe_set *set);

typedef void (*probe_handler)(void *context, const struct event *event);

/* Waits until an eighth of the ring buffer is filled, an event comes that must be acted on at once, or
 * `timeout_ms` have passed. Then calls `handler` for each event that is there. To be called at least ten times a
 * second. Returns the number of events, or a negative errno (-EINTR: a signal). */
int probe_poll(struct probe_set *set, int timeout_ms, probe_handler handler, void *context);

/* The kernel side's counters since the set was opened, one for each enum probe_counter. */
void probe_read_counters(const struct probe_set *set, uint64_t ret_counters[COUNTERS]);

/* Calls `handler` with the exact figures of each thread that runs now. Those of a thread that has ended come with
 * EVENT_THREAD_END. */
typedef void (*probe_thread_handler)(
    void *context, uint32_t pid, uint32_t tid, const struct thread_figures *figures);
void probe_each_thread(const struct probe_set *set, probe_thread_handler handler, void *context);

/* Tells the kernel side where the outermost frame of a thread ends, which the unwinder finds out. From then on the
 * thread's stack is copied up to there only. Without this call the thread-local variables, which lie above the
 * outermost frame, are copied too: that costs time but changes no result. UINT64_MAX takes the call back. */
void probe_set_stack_end(struct probe_set *set, uint32_t tid, uint64_t address);

/* Removes the probes of one process: when it has ended, or when it runs another program (EVENT_EXEC), for which a
 * new plan is attached. Does not wait: the kernel takes some 10 ms for each link, and another thread waits for
 * it. */
void probe_detach_process(struct probe_set *set, pid_t pid);

/* Removes all probes. The programs run on as before. Events that were sent before can still be polled. */
void probe_detach(struct probe_set *set);

/* Detaches and frees the set, which may be NULL. */
void probe_close(struct probe_set *set);

#endif
