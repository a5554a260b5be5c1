/* Probes in a running program, and the events that come of them.
 *
 *     plan_make ──► probe_open ──► probe_attach ──► probe_poll … ──► probe_detach ──► probe_poll ──►
 * probe_close ▲                │ └─ plan_extend ◄─┘  EVENT_MODULES: libraries came
 *
 * One set serves several processes: attach the plan of each. Events of all come through one ring. A set
 * belongs to one thread. event.h describes the events and the counters. */
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
    uint64_t rate;        /* mean bytes between samples, up to 4 GiB; 1 = every allocation */
    uint32_t stack_bytes; /* how much of a stack is copied at most, up to 64 KiB */
    bool frame_pointers;  /* follow frame pointers in the kernel instead of copying: cheaper, often short */
    uint32_t live_blocks; /* how many blocks can be tracked at once; about 110 bytes of kernel memory each */
    uint32_t ring_bytes;  /* a power of two; holds what the tool has not fetched yet */
    bool follow;          /* tell also of children's forks, execs and ends before they are attached to */
    bool exceptions;      /* plan_throws: exceptions must find their way; takes CAP_SYS_ADMIN */
    enum probe_method method; /* METHOD_BEST, or one to be used whatever the kernel could do better */
};

/* rate 512 KiB, 16 KiB of stack, 1 M blocks, 1 MiB ring (the command asks for more: cli/command/attach.c). */
extern const struct probe_options probe_options_default;

/* Loads the kernel side. `*ret_trouble` says which kind of failure it was. */
int probe_open(const struct probe_options *options, struct probe_set **ret_set,
    enum probe_trouble *ret_trouble, struct problem *problem);

/* Puts the probes of `plan` that are not there yet into its process and starts to follow it. The first call
 * for a process must be made with its whole plan.
 *
 * While the return of a function is awaited, an address of the kernel's stands in the place of its return
 * address, and an exception that is thrown inside ends the program. That concerns `operator new` of
 * allocators that do not build it on malloc, out of memory. If the set was opened for exceptions, and the
 * kernel lets programs write, the address is put back in time. Else such functions are probed only if each
 * call can decide (METHOD_SESSION), for sizes that the machine has, and not if the process's memory is
 * limited; where they are left out, a warning is added to the plan. */
int probe_attach(struct probe_set *set, struct plan *plan, struct problem *problem);

enum probe_method probe_method(const struct probe_set *set);

typedef void (*probe_handler)(void *context, const struct event *event);

/* Waits until enough has come to be worth it, or `timeout_ms` have passed, and hands over all that there is.
 * Call it at least ten times a second. Returns the number of events, or a negative errno (-EINTR: a signal).
 */
int probe_poll(struct probe_set *set, int timeout_ms, probe_handler handler, void *context);

/* Readable when enough has come; for callers with a loop of their own, who then poll with a timeout of 0. */
int probe_descriptor(const struct probe_set *set);

/* What was counted since the set was opened, one figure for each enum probe_counter. */
void probe_read_counters(const struct probe_set *set, uint64_t ret_counters[COUNTERS]);

/* The exact figures of the threads that run now. Ended ones were told by EVENT_THREAD_END. */
typedef void (*probe_thread_handler)(
    void *context, uint32_t pid, uint32_t tid, const struct thread_figures *figures);
void probe_each_thread(const struct probe_set *set, probe_thread_handler handler, void *context);

/* Tells where a thread's outermost frame ends, which the unwinder finds out: from then on no more of its
 * stack than that is copied. Not needed, but thread-local variables lie behind the frames and are copied
 * else. */
void probe_set_stack_end(struct probe_set *set, uint32_t tid, uint64_t address);

/* Takes the probes of one process out: when it has ended, or runs another program (EVENT_EXEC) for which a
 * new plan is to be attached. The kernel takes its time for it, and nobody waits. */
void probe_detach_process(struct probe_set *set, pid_t pid);

/* Takes all probes out. The targets run on as before; what was told before can still be polled. */
void probe_detach(struct probe_set *set);

/* Detaches and frees. NULL is fine. */
void probe_close(struct probe_set *set);

#endif
