#include "attach/session/session.h"

#include "attach/bpf/target_access.h"
#include "attach/remote/remote.h"
#include "base/memory.h"
#include "base/nanoseconds.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A process that has just begun is tried again every NEWCOMER_MS, until its allocator is loaded; at most
 * NEWCOMER_TRIES times. */
#define NEWCOMER_MS    5
#define NEWCOMER_TRIES 400

/* What a hit costs the program, as measured in a virtual machine (docs/design/attach.md). Less on bare metal. */
#define SECONDS_OF_ENTRY  0.6e-6
#define SECONDS_OF_RETURN 0.35e-6

/* A process that is recorded: a member of the list session->processes. */
struct process {
    int pid;
    struct plan *plan;
    struct remote *remote;
    struct collector *collector;
    uint64_t modules_noted; /* modules up to this number are in the recording */
    uint64_t *frames;       /* room for the stack that is being walked */
    bool is_late;           /* it ran before it had probes */
    struct process *next;
};

/* A child process that is to be recorded and is not attached to yet: the dynamic linker may still have to load its
 * allocator. */
struct newcomer {
    int pid;
    int parent; /* the process that it is a forked copy of; 0: it has become another program */
    unsigned tries;
};

/* What the kernel side was told about where a thread's outermost frame ends. */
struct known_end {
    uint32_t thread;
    uint64_t end; /* UINT64_MAX: what was told was wrong, and nothing is told again */
};

#define KNOWN_ENDS 256u

struct session {
    struct session_options options;
    struct probe_set *probes;
    struct process *processes;
    char *path;
    uint64_t recordings;
    bool target_ended, target_changed;
    struct collector_figures ended; /* of processes that are gone */
    struct newcomer *newcomers;
    size_t newcomer_count;
    uint64_t not_followed, late, missed; /* see struct session_status */
    uint64_t until; /* the session detached at this time; later events are ignored. 0: not yet */
    uint64_t last_counters[COUNTERS];  /* the kernel side's counters at that time */
    struct known_end ends[KNOWN_ENDS]; /* at index thread % KNOWN_ENDS: of the thread that was seen last */
};

static struct process *process_of(const struct session *session, uint32_t pid) {
    struct process *process = session->processes;
    while (process && process->pid != (int)pid) process = process->next;
    return process;
}

/* ---- stacks ---- */

static void note_modules(struct process *process) {
    uint64_t newest = remote_newest_module(process->remote);
    if (newest == process->modules_noted) return;
    for (uint32_t i = 0; i < remote_module_count(process->remote); i++) {
        const struct remote_module *module = remote_module_at(process->remote, i);
        if (module->number <= process->modules_noted) continue;
        struct module_record record = remote_module_record(module);
        collector_note_module(process->collector, &record, module->path);
    }
    process->modules_noted = newest;
}

/* Puts the frames of an allocation into process->frames. Returns their number; the flags are of enum stack_flag. */
static uint32_t unwind_event(
    struct process *process, uint32_t depth, const struct event_allocation *event, uint32_t *ret_flags) {
    *ret_flags = 0;
    if (event->stack_kind == EVENT_STACK_FRAMES) {
        uint32_t count = event->stack_size / sizeof(uint64_t);
        if (count > depth) count = depth;
        memcpy(process->frames, event->stack, count * sizeof(uint64_t));
        return count;
    }
    const struct event_registers *from = &event->registers;
    struct unwind_registers registers = {
        .pc = from->ip,
        .sp = from->sp,
        .fp = from->bp,
#if defined(__x86_64__) /* plan_make refuses programs for other machines */
        .rbx = from->bx,
        .r12 = from->r12,
        .r13 = from->r13,
        .r14 = from->r14,
        .r15 = from->r15,
#endif
    };
    enum remote_end end;
    uint32_t count = remote_unwind(
        process->remote, &registers, event->stack, event->stack_size, process->frames, depth, &end);
    if (end == REMOTE_COMPLETE) *ret_flags |= STACK_COMPLETE;
    if (end == REMOTE_SHORT) *ret_flags |= STACK_CUT;
    return count;
}

/* Tells the kernel side where the outermost frame of a thread ends, so that it copies the thread's stack up to
 * there only. If a later walk comes to that end and should go on, the end was that of another stack on which the
 * thread ran at the time (a coroutine's), and is taken back. */
static void note_stack_end(struct session *session, const struct process *process,
    const struct event_allocation *event, uint32_t flags) {
    uint32_t thread = event->event.tid;
    struct known_end *known = &session->ends[thread % KNOWN_ENDS];
    uint64_t end = remote_stack_end(process->remote), copied = event->registers.sp + event->stack_size;
    bool is_known = known->thread == thread;
    if (flags & STACK_COMPLETE) {
        if ((is_known && end <= known->end) || end <= event->registers.sp) return;
    } else {
        if (!is_known || copied != known->end) return;
        end = UINT64_MAX;
    }
    *known = (struct known_end){thread, end};
    probe_set_stack_end(session->probes, thread, end);
}

static void handle_allocation(
    struct session *session, struct process *process, const struct event_allocation *event) {
    int32_t thread = (int32_t)event->event.tid;
    if (event->ended) collector_freed(process->collector, event->ended, thread, event->event.time);
    if (event->replaced) collector_freed(process->collector, event->replaced, thread, event->event.time);
    uint32_t flags, count = unwind_event(process, session->options.depth, event, &flags);
    if (event->stack_kind == EVENT_STACK_COPY) note_stack_end(session, process, event, flags);
    note_modules(process);
    collector_allocated(process->collector, &(struct collected_block){
                                                .number = event->block,
                                                .address = event->address,
                                                .size = event->size,
                                                .time = event->event.time,
                                                .thread = thread,
                                                .frames = process->frames,
                                                .frame_count = count,
                                                .flags = flags,
                                            });
}

/* ---- processes ---- */

static void free_process(struct process *process) {
    plan_free(process->plan);
    if (process->remote) remote_close(process->remote);
    if (process->collector) collector_close(process->collector);
    free(process->frames);
    free(process);
}

static char *allocator_text(const struct plan *plan) {
    char *text = memory_copy_text("");
    for (size_t i = 0; i < plan->layer_count; i++) {
        char *longer = memory_format_text("%s%s%s", text, i ? ", " : "", plan->layers[i].name);
        free(text);
        text = longer;
    }
    return text;
}

static int begin_recording(struct session *session, struct process *process, struct problem *problem) {
    const struct session_options *options = &session->options;
    char *path = options->path_of(options->context, process->pid), *allocator = allocator_text(process->plan);
    struct collector_options collector = {
        .path = path,
        .replace = options->replace,
        .pid = process->pid,
        .rate = options->probes.rate,
        .depth = options->depth,
        .size_max = options->size_max,
        .allocator = allocator,
    };
    int r = collector_open(&collector, &process->collector, problem);
    if (r == 0 && !session->path) {
        session->path = path;
        path = NULL;
    }
    free(path);
    free(allocator);
    return r;
}

static int cannot_look(int pid, int error, struct problem *problem) {
    if (error == -ENOEXEC)
        return problem_set(problem, PROBLEM_USAGE, "attach to a 64-bit program of this machine's kind",
            "process %d is not a 64-bit program", pid);
    return problem_set(problem, problem_kind_of_errno(-error), "run this as root: sudo malloscope attach ...",
        "cannot look into process %d: %s", pid, strerror(-error));
}

/* Puts those probes of the plan into the process that are not in place yet. */
static int attach_plan(struct session *session, struct process *process, struct problem *problem) {
    int r = probe_attach(session->probes, process->plan, problem);
    if (plan_misses(process->plan)) collector_mark_partial(process->collector);
    return r;
}

/* Attaches to a process and begins its recording. `parent`: the process that it is a forked copy of, or NULL. */
static int add_process(
    struct session *session, int pid, const struct process *parent, struct problem *problem) {
    struct process *process = memory_allocate(sizeof *process);
    process->pid = pid;
    process->frames = memory_allocate_array(session->options.depth, sizeof *process->frames);
    int r = 0;
    if (parent)
        process->plan = plan_of_child(parent->plan, pid);
    else
        r = plan_make(pid, &process->plan, problem);
    int looked = r == 0 ? remote_open(pid, &process->remote) : 0;
    if (looked < 0) r = cannot_look(pid, looked, problem);
    if (r == 0) r = begin_recording(session, process, problem);
    if (r == 0) {
        note_modules(process);
        r = attach_plan(session, process, problem);
    }
    if (r == 0) r = target_access_check(pid, problem);
    if (r < 0) {
        if (process->collector) unlink(collector_path(process->collector));
        probe_detach_process(session->probes, pid);
        free_process(process);
        return r;
    }
    process->next = session->processes;
    session->processes = process;
    session->recordings++;
    return 0;
}

static void note_losses(struct session *session, struct process *process);

static void end_process(struct session *session, struct process *process, bool has_ended) {
    struct process **link = &session->processes;
    while (*link != process) link = &(*link)->next;
    *link = process->next;
    struct collector_figures figures = collector_figures(process->collector);
    session->ended.samples += figures.samples;
    session->ended.frees += figures.frees;
    if (figures.peak_bytes > session->ended.peak_bytes) session->ended.peak_bytes = figures.peak_bytes;
    if (process->pid == session->options.pid && has_ended) session->target_ended = true;
    note_losses(session, process);
    /* A forked child that has allocated nothing gets no recording: most call exec at once. */
    if (process->pid != session->options.pid && figures.samples == 0) {
        unlink(collector_path(process->collector));
        session->recordings--;
        /* What it allocated before it had probes is not known. */
        if (process->is_late) session->late--;
        if (process->is_late && has_ended) session->missed++;
    }
    probe_detach_process(session->probes, process->pid);
    free_process(process);
}

/* Whether the process was one. */
static bool forget_newcomer(struct session *session, int pid) {
    size_t kept = 0, before = session->newcomer_count;
    for (size_t i = 0; i < before; i++)
        if (session->newcomers[i].pid != pid) session->newcomers[kept++] = session->newcomers[i];
    session->newcomer_count = kept;
    return kept < before;
}

static void expect_newcomer(struct session *session, int pid, int parent) {
    if (!session->options.follow) return;
    forget_newcomer(session, pid);
    session->newcomers =
        memory_reallocate_array(session->newcomers, session->newcomer_count + 1, sizeof *session->newcomers);
    session->newcomers[session->newcomer_count++] = (struct newcomer){.pid = pid, .parent = parent};
}

/* `process` is NULL for a child that was not attached to yet. */
static void handle_exec(struct session *session, struct process *process, int pid) {
    if (process) end_process(session, process, false);
    if (pid == session->options.pid)
        session->target_changed = true;
    else
        expect_newcomer(session, pid, 0);
}

static void add_newcomers(struct session *session) {
    size_t kept = 0;
    for (size_t i = 0; i < session->newcomer_count; i++) {
        struct newcomer *one = &session->newcomers[i];
        const struct process *parent = one->parent ? process_of(session, (uint32_t)one->parent) : NULL;
        if (kill(one->pid, 0) != 0) {
            session->missed++;
            continue;
        }
        if (add_process(session, one->pid, parent, NULL) == 0) {
            session->processes->is_late = true;
            collector_mark_late(session->processes->collector);
            session->late++;
            continue;
        }
        if (++one->tries < NEWCOMER_TRIES)
            session->newcomers[kept++] = *one;
        else
            session->not_followed++;
    }
    session->newcomer_count = kept;
}

/* ---- events ---- */

/* A delayed free does not say which process it belongs to. Any process may be asked: a block number is used in one
 * process only. */
static void handle_free(struct session *session, const struct event_free *event) {
    for (struct process *process = session->processes; process; process = process->next)
        if (event->event.pid == 0 || process->pid == (int)event->event.pid)
            collector_freed(process->collector, event->block, (int32_t)event->event.tid, event->event.time);
}

/* Forks, execs and ends of processes. `process` is NULL for a child that was not attached to yet. */
static void handle_process(struct session *session, struct process *process, const struct event *event) {
    if (event->kind == EVENT_FORK) {
        const struct event_fork *fork = (const struct event_fork *)event;
        if (!fork->shares_memory) expect_newcomer(session, (int)fork->child, (int)event->pid);
    } else if (event->kind == EVENT_EXEC) {
        handle_exec(session, process, (int)event->pid);
    } else {
        if (forget_newcomer(session, (int)event->pid)) session->missed++;
        if (process) end_process(session, process, true);
    }
}

static struct collected_thread figures_of(const struct thread_figures *figures) {
    return (struct collected_thread){
        .bytes = figures->bytes, .frees = figures->frees, .frees_unknown = figures->frees_unknown};
}

static void handle_event(void *context, const struct event *event) {
    struct session *session = context;
    if (session->until && event->time > session->until) return;
    if (event->kind == EVENT_FREE) {
        handle_free(session, (const struct event_free *)event);
        return;
    }
    struct process *process = process_of(session, event->pid);
    if (event->kind == EVENT_FORK || event->kind == EVENT_EXEC || event->kind == EVENT_PROCESS_END) {
        handle_process(session, process, event);
        return;
    }
    if (!process) return;
    switch ((enum event_kind)event->kind) {
    case EVENT_ALLOCATION:
        handle_allocation(session, process, (const struct event_allocation *)event);
        break;
    case EVENT_FREE:
        break;
    case EVENT_THREAD:
        session->ends[event->tid % KNOWN_ENDS] = (struct known_end){0};
        break;
    case EVENT_THREAD_END: {
        const struct event_thread *thread = (const struct event_thread *)event;
        struct collected_thread figures = figures_of(&thread->figures);
        collector_thread_ended(process->collector, (int32_t)event->tid, &figures, event->time);
        break;
    }
    case EVENT_FORK:
    case EVENT_EXEC:
    case EVENT_PROCESS_END:
        break;
    case EVENT_MODULES:
        remote_refresh(process->remote);
        note_modules(process);
        if (plan_extend(process->plan, NULL) == 0) attach_plan(session, process, NULL);
        break;
    }
}

/* After the session has detached, the counters of that moment: what the kernel side counted while the probes were
 * being removed belongs to no recording. */
static void read_counters(const struct session *session, uint64_t ret_counters[COUNTERS]) {
    if (session->until)
        memcpy(ret_counters, session->last_counters, sizeof session->last_counters);
    else
        probe_read_counters(session->probes, ret_counters);
}

/* The kernel side counts for all processes together. The recording of the program that was attached to gets the
 * sums. */
static void note_losses(struct session *session, struct process *process) {
    uint64_t counters[COUNTERS], lost[DROP_KINDS] = {0};
    if (process->pid != session->options.pid) return;
    read_counters(session, counters);
    lost[DROP_RING] = counters[COUNT_LOST_RING];
    lost[DROP_TRACKED] = counters[COUNT_LOST_LIVE];
    lost[DROP_CALL] = counters[COUNT_LOST_CALLS];
    lost[DROP_THREAD] = counters[COUNT_LOST_THREADS];
    lost[DROP_CHILD] = session->missed + session->not_followed + counters[COUNT_LOST_CHILDREN];
    collector_note_losses(process->collector, lost);
}

static void note_thread(void *context, uint32_t pid, uint32_t tid, const struct thread_figures *figures) {
    struct process *process = process_of(context, pid);
    struct collected_thread collected = figures_of(figures);
    if (process) collector_thread_figures(process->collector, (int32_t)tid, &collected);
}

/* ---- the session ---- */

int session_open(const struct session_options *options, struct session **ret_session,
    enum probe_trouble *ret_trouble, struct problem *problem) {
    *ret_trouble = PROBE_FINE;
    struct session *session = memory_allocate(sizeof *session);
    session->options = *options;
    session->options.probes.follow = options->follow;
    int r = probe_open(&session->options.probes, &session->probes, ret_trouble, problem);
    if (r == 0) r = add_process(session, options->pid, NULL, problem);
    if (r < 0) {
        probe_close(session->probes);
        free(session->path);
        free(session);
        return r;
    }
    *ret_session = session;
    return 0;
}

int session_poll(struct session *session, int timeout_ms) {
    bool is_waiting = session->newcomer_count > 0;
    int r = probe_poll(session->probes, is_waiting ? NEWCOMER_MS : timeout_ms, handle_event, session);
    add_newcomers(session);
    return r < 0 ? r : 0;
}

void session_set_baseline(struct session *session) {
    for (struct process *process = session->processes; process; process = process->next)
        collector_forget_all(process->collector, nanoseconds_now(CLOCK_MONOTONIC));
    session->ended = (struct collector_figures){0};
}

struct session_status session_status(struct session *session) {
    uint64_t counters[COUNTERS];
    read_counters(session, counters);
    struct session_status status = {
        .samples = session->ended.samples,
        .frees = session->ended.frees,
        .peak_bytes = session->ended.peak_bytes,
        .recordings = session->recordings,
        .processes = session->newcomer_count,
        .target_ended = session->target_ended,
        .target_changed = session->target_changed,
        .lost = counters[COUNT_LOST_RING] + counters[COUNT_LOST_LIVE] + counters[COUNT_LOST_CALLS] +
                counters[COUNT_LOST_THREADS],
        .not_followed = session->not_followed,
        .late = session->late,
        .missed = session->missed + counters[COUNT_LOST_CHILDREN],
        .probe_seconds = (double)counters[COUNT_ENTRIES] * SECONDS_OF_ENTRY +
                         (double)counters[COUNT_RETURNS] * SECONDS_OF_RETURN,
    };
    probe_each_thread(session->probes, note_thread, session);
    for (struct process *process = session->processes; process; process = process->next) {
        struct collector_figures figures = collector_figures(process->collector);
        note_losses(session, process);
        status.processes++;
        status.live_bytes += figures.live_bytes;
        if (figures.peak_bytes > status.peak_bytes) status.peak_bytes = figures.peak_bytes;
        status.samples += figures.samples;
        status.frees += figures.frees;
    }
    return status;
}

const char *session_path(const struct session *session) {
    return session->path;
}

enum probe_method session_method(const struct session *session) {
    return probe_method(session->probes);
}

const struct plan_note *session_warnings(const struct session *session, size_t *ret_count) {
    const struct process *process = process_of(session, (uint32_t)session->options.pid);
    *ret_count = process ? process->plan->warning_count : 0;
    return process ? process->plan->warnings : NULL;
}

void session_detach(struct session *session) {
    probe_each_thread(session->probes, note_thread, session);
    /* Removing the probes takes long enough for a busy program to free all its blocks, while no new blocks are
     * tracked any more. So the recordings end with what is live at this moment. */
    probe_read_counters(session->probes, session->last_counters);
    session->until = nanoseconds_now(CLOCK_MONOTONIC);
    probe_detach(session->probes);
    while (probe_poll(session->probes, 0, handle_event, session) > 0) {
    }
    while (session->processes) end_process(session, session->processes, false);
}

void session_close(struct session *session) {
    probe_close(session->probes);
    free(session->newcomers);
    free(session->path);
    free(session);
}
