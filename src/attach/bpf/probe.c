#include "attach/bpf/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "attach/bpf/bpf_maps.h"
#include "attach/bpf/cookie.h"
#include "attach/bpf/exception.skel.h"
#include "attach/bpf/heap.skel.h"
#include "attach/bpf/probe_links.h"
#include "attach/bpf/sampling_interval.h"
#include "attach/bpf/uprobe_link.h"
#include "base/limits.h"
#include "base/memory.h"

const struct probe_options probe_options_default = {
    .rate = DEFAULT_RATE,
    .stack_bytes = 16 << 10,
    .live_blocks = 1 << 20,
    .ring_bytes = 1 << 20,
};

struct probe_set {
    struct heap_bpf *skeleton;
    struct exception_bpf *exceptions; /* NULL until a plan needs it, or if the kernel refuses it */
    struct ring_buffer *ring;
    enum probe_method method;
    bool avoids_throwing; /* during probe_attach: functions that may throw are not probed */
    uint32_t exec_count;  /* during probe_attach: how often the process has called exec */
    struct probe_link *links;
    size_t link_count;
    struct probe_links_closer closer;
    probe_handler handler; /* during probe_poll */
    void *context;
};

/* ---- loading ---- */

/* Why loading failed, for the error message: the reason that the kernel's verifier gave, or else the first
 * warning of libbpf. */
static char complaint[512];

/* The verifier's log ends with its reason, followed by a line of statistics. */
static void keep_reason(const char *log) {
    const char *end = strstr(log, "\nprocessed "), *start = end;
    if (!end) return;
    while (start > log && start[-1] != '\n') start--;
    snprintf(complaint, sizeof complaint, "%.*s", (int)(end - start), start);
}

static int keep_complaint(enum libbpf_print_level level, const char *format, va_list arguments) {
    if (level != LIBBPF_WARN) return 0;
    char *text = memory_format_arguments(format, arguments);
    if (!complaint[0]) snprintf(complaint, sizeof complaint, "%.*s", (int)strcspn(text, "\n"), text);
    keep_reason(text);
    free(text);
    return 0;
}

static int check_options(const struct probe_options *options, struct problem *problem) {
    if (options->rate < 1 || options->rate > SAMPLING_RATE_MAX)
        return problem_set(problem, PROBLEM_USAGE, "choose one between 1 and 4 GiB",
            "a mean of %llu bytes between samples is out of range", (unsigned long long)options->rate);
    if (options->stack_bytes > 64 << 10)
        return problem_set(problem, PROBLEM_USAGE, "choose up to 64 KiB",
            "%u bytes of each stack are more than can be copied", options->stack_bytes);
    if (options->ring_bytes < 64 << 10 || (options->ring_bytes & (options->ring_bytes - 1)))
        return problem_set(problem, PROBLEM_USAGE, "choose a power of two, 64 KiB or more",
            "a ring of %u bytes is not possible", options->ring_bytes);
    if (options->ring_bytes < 4 * (uint64_t)options->stack_bytes)
        return problem_set(problem, PROBLEM_USAGE, "choose a larger ring, or copy less of each stack",
            "a ring of %u bytes is too small for stacks of %u", options->ring_bytes, options->stack_bytes);
    if (options->live_blocks < 1)
        return problem_set(problem, PROBLEM_USAGE, "choose 1 or more", "no blocks can be tracked");
    return 0;
}

/* RAM and swap together. In its default mode of overcommit the kernel refuses a request for more than this at
 * once. */
static uint64_t machine_memory(void) {
    struct sysinfo info;
    return sysinfo(&info) == 0 ? (info.totalram + info.totalswap) * info.mem_unit : 0;
}

static void configure(struct probe_set *set, const struct probe_options *options) {
    struct heap_bpf *skeleton = set->skeleton;
    skeleton->rodata->rate = options->rate;
    skeleton->rodata->stack_limit = options->stack_bytes;
    skeleton->rodata->stack_by_frames = options->frame_pointers;
    skeleton->rodata->wake_bytes = options->ring_bytes / 8;
    skeleton->rodata->follows_children = options->follow;
    skeleton->bss->throw_limit = machine_memory();
    bpf_map__set_max_entries(skeleton->maps.ring, options->ring_bytes);
    bpf_map__set_max_entries(skeleton->maps.live, options->live_blocks);
    bpf_map__set_max_entries(skeleton->maps.late_frees, options->live_blocks);

    bool has_session = set->method == METHOD_SESSION;
    bpf_program__set_autoload(skeleton->progs.heap_session, has_session);
    bpf_program__set_autoload(skeleton->progs.heap_call, !has_session);
    bpf_program__set_autoload(skeleton->progs.heap_return, !has_session);
    if (set->method == METHOD_PERF) return;
    struct bpf_program *multi[] = {skeleton->progs.heap_call, skeleton->progs.heap_return,
        skeleton->progs.heap_free, skeleton->progs.modules_changed};
    for (size_t i = 0; i < sizeof multi / sizeof *multi; i++)
        bpf_program__set_expected_attach_type(multi[i], (enum bpf_attach_type)ATTACH_UPROBE_MULTI);
    bpf_program__set_expected_attach_type(
        skeleton->progs.heap_session, (enum bpf_attach_type)ATTACH_UPROBE_SESSION);
}

static void add_link(struct probe_set *set, enum link_group group, pid_t pid, int fd, struct bpf_link *link) {
    set->links = memory_reallocate(set->links, (set->link_count + 1) * sizeof *set->links);
    set->links[set->link_count++] = (struct probe_link){group, pid, fd, link};
}

/* Attaches the programs that see forks, execs and ends of processes. They serve all processes. */
static int watch_processes(struct probe_set *set) {
    struct bpf_program *programs[] = {set->skeleton->progs.process_forked,
        set->skeleton->progs.process_replaced, set->skeleton->progs.thread_ended};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct bpf_link *link = bpf_program__attach(programs[i]);
        long error = libbpf_get_error(link);
        if (error) return (int)error;
        add_link(set, GROUP_OTHERS, 0, -1, link);
    }
    return 0;
}

static int receive(void *context, void *data, size_t size) {
    (void)size;
    const struct probe_set *set = context;
    set->handler(set->context, data);
    return 0;
}

static int load(struct probe_set *set, const struct probe_options *options) {
    set->skeleton = heap_bpf__open();
    if (!set->skeleton) return -errno;
    configure(set, options);
    int r = heap_bpf__load(set->skeleton);
    if (r < 0) return r;
    LIBBPF_OPTS(bpf_test_run_opts, run);
    r = bpf_prog_test_run_opts(bpf_program__fd(set->skeleton->progs.find_level), &run);
    if (r < 0) return r;
    r = watch_processes(set);
    if (r < 0) return r;
    set->ring = ring_buffer__new(bpf_map__fd(set->skeleton->maps.ring), receive, set, NULL);
    return set->ring ? 0 : -errno;
}

int probe_open(const struct probe_options *options, struct probe_set **ret_set,
    enum probe_trouble *ret_trouble, struct problem *problem) {
    *ret_trouble = PROBE_OTHER;
    int r = check_options(options, problem);
    if (r < 0) return r;
    complaint[0] = '\0';
    libbpf_set_print(keep_complaint);
    enum probe_method method = METHOD_BEST;
    r = kernel_support_find(&method, ret_trouble, problem);
    if (r < 0) return r;
    if (options->method != METHOD_BEST && options->method < method)
        return problem_set(problem, PROBLEM_FAILURE, "leave the choice to malloscope",
            "this kernel has no %s", kernel_support_method_name(options->method));

    struct probe_set *set = memory_allocate(sizeof *set);
    set->method = options->method != METHOD_BEST ? options->method : method;
    r = load(set, options);
    if (r < 0) {
        bool no_memory = r == -ENOMEM || r == -E2BIG;
        *ret_trouble = no_memory ? PROBE_NO_MEMORY : PROBE_OTHER;
        probe_close(set);
        return problem_set(problem, problem_kind_of_errno(-r),
            no_memory ? "track fewer blocks, or use a smaller ring"
                      : "please report this, with the kernel's version",
            "the kernel does not take the probes' program: %s%s%s", strerror(-r), complaint[0] ? "; " : "",
            complaint);
    }
    *ret_trouble = PROBE_FINE;
    *ret_set = set;
    return 0;
}

/* ---- attaching ---- */

static bool is_in_group(const struct probe_set *set, const struct plan_probe *probe, enum link_group group) {
    switch (group) {
    case GROUP_CALLS:
    case GROUP_RETURNS:
        return probe->catches_return && !(probe->throws && set->avoids_throwing);
    case GROUP_FREES:
        return probe->role == ROLE_FREE;
    case GROUP_UNWINDS:
        return probe->role == ROLE_UNWIND && set->exceptions;
    case GROUP_OTHERS:
        return probe->role == ROLE_MODULES;
    case GROUPS:
        break;
    }
    return false;
}

static struct bpf_program *program_of(const struct probe_set *set, enum link_group group) {
    switch (group) {
    case GROUP_CALLS:
        return set->method == METHOD_SESSION ? set->skeleton->progs.heap_session
                                             : set->skeleton->progs.heap_call;
    case GROUP_RETURNS:
        return set->skeleton->progs.heap_return;
    case GROUP_FREES:
        return set->skeleton->progs.heap_free;
    case GROUP_UNWINDS:
        return set->exceptions->progs.exception_raised;
    case GROUP_OTHERS:
    case GROUPS:
        break;
    }
    return set->skeleton->progs.modules_changed;
}

/* With METHOD_MULTI and METHOD_PERF every return is caught. So every call of a function that may throw has to be
 * remembered until it returns: exception.bpf.c restores the return address of a remembered call. COOKIE_NESTS
 * makes the kernel side remember it. */
static uint64_t cookie_of(const struct probe_set *set, const struct plan_probe *probe) {
    uint64_t cookie = probe->cookie | (set->exec_count & COOKIE_EXECS_MAX) << COOKIE_EXECS;
    return probe->throws && set->method != METHOD_SESSION ? cookie | COOKIE_NESTS : cookie;
}

/* Attaches all probes of a group that are in the file of the probe `first`, by one link. No probe before `first`
 * is in that group and file. */
static int attach_multi(struct probe_set *set, const struct plan *plan, enum link_group group, size_t first) {
    const char *path = plan->probes[first].path;
    unsigned long *offsets = memory_allocate_array(plan->probe_count, sizeof *offsets);
    unsigned long *cookies = memory_allocate_array(plan->probe_count, sizeof *cookies);
    struct uprobe_link link = {.program = bpf_program__fd(program_of(set, group)),
        .attach_type = group == GROUP_CALLS && set->method == METHOD_SESSION ? ATTACH_UPROBE_SESSION
                                                                             : ATTACH_UPROBE_MULTI,
        .on_return = group == GROUP_RETURNS,
        .pid = plan->pid,
        .path = path,
        .offsets = offsets,
        .cookies = cookies};
    for (size_t i = first; i < plan->probe_count; i++) {
        const struct plan_probe *probe = &plan->probes[i];
        if (!is_in_group(set, probe, group) || strcmp(probe->path, path) != 0) continue;
        offsets[link.count] = probe->file_offset;
        cookies[link.count++] = cookie_of(set, probe);
    }
    int fd = uprobe_link_create(&link);
    free(offsets);
    free(cookies);
    if (fd < 0) return fd;
    add_link(set, group, plan->pid, fd, NULL);
    return 0;
}

static int attach_perf(struct probe_set *set, const struct plan *plan, enum link_group group, size_t index) {
    const struct plan_probe *probe = &plan->probes[index];
    LIBBPF_OPTS(
        bpf_uprobe_opts, options, .retprobe = group == GROUP_RETURNS, .bpf_cookie = cookie_of(set, probe));
    struct bpf_link *link = bpf_program__attach_uprobe_opts(
        program_of(set, group), plan->pid, probe->path, probe->file_offset, &options);
    long error = libbpf_get_error(link);
    if (error) return (int)error;
    add_link(set, group, plan->pid, -1, link);
    return 0;
}

static int attach_group(
    struct probe_set *set, const struct plan *plan, enum link_group group, size_t *ret_failed) {
    for (size_t i = plan->attached; i < plan->probe_count; i++) {
        if (!is_in_group(set, &plan->probes[i], group)) continue;
        bool is_done = false;
        for (size_t k = plan->attached; k < i && set->method != METHOD_PERF && !is_done; k++)
            is_done = is_in_group(set, &plan->probes[k], group) &&
                      strcmp(plan->probes[k].path, plan->probes[i].path) == 0;
        if (is_done) continue;
        int r =
            set->method == METHOD_PERF ? attach_perf(set, plan, group, i) : attach_multi(set, plan, group, i);
        *ret_failed = i;
        if (r < 0) return r;
    }
    return 0;
}

/* Moves the links of a process out of the set, or those of all processes if `pid` is 0. Links before the index
 * `from` stay. */
static struct probe_links withdraw_links(struct probe_set *set, size_t from, pid_t pid) {
    struct probe_links list = {.links = memory_allocate_array(set->link_count + 1, sizeof *list.links)};
    size_t kept = from;
    for (int group = 0; group < GROUPS; group++)
        for (size_t i = from; i < set->link_count; i++)
            if (set->links[i].group == (enum link_group)group && (!pid || set->links[i].pid == pid))
                list.links[list.count++] = set->links[i];
    for (size_t i = from; i < set->link_count; i++)
        if (pid && set->links[i].pid != pid) set->links[kept++] = set->links[i];
    set->link_count = kept;
    return list;
}

static void drop_links(struct probe_set *set, size_t from, pid_t pid) {
    struct probe_links list = withdraw_links(set, from, pid);
    probe_links_close(&list);
}

/* Whether a request for memory may fail although the machine has enough. */
static bool has_limited_memory(pid_t pid) {
    struct rlimit space, data;
    if (prlimit(pid, RLIMIT_AS, NULL, &space) != 0 || prlimit(pid, RLIMIT_DATA, NULL, &data) != 0)
        return true;
    if (space.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY) return true;
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
    int mode = file ? fgetc(file) : '2';
    if (file) fclose(file);
    return mode == '2';
}

/* Loads exception.bpf.c. False if the kernel does not let BPF programs write to user memory. */
static bool load_exceptions(struct probe_set *set) {
    if (set->exceptions) return true;
    struct exception_bpf *skeleton = exception_bpf__open();
    if (!skeleton) return false;
    bpf_map__reuse_fd(skeleton->maps.threads, bpf_map__fd(set->skeleton->maps.threads));
    bpf_map__reuse_fd(skeleton->maps.counters, bpf_map__fd(set->skeleton->maps.counters));
    if (set->method != METHOD_PERF)
        bpf_program__set_expected_attach_type(
            skeleton->progs.exception_raised, (enum bpf_attach_type)ATTACH_UPROBE_MULTI);
    if (exception_bpf__load(skeleton) < 0) {
        exception_bpf__destroy(skeleton);
        return false;
    }
    set->exceptions = skeleton;
    set->skeleton->bss->throw_limit = UINT64_MAX;
    return true;
}

static void warn_of_throwing(struct plan *plan) {
    for (size_t i = plan->attached; i < plan->probe_count; i++)
        if (plan->probes[i].throws)
            plan_warn(plan, plan->probes[i].function,
                "is not probed: it may throw, and on this kernel the exception would not find its way");
}

int probe_attach(struct probe_set *set, struct plan *plan, struct problem *problem) {
    uint32_t pid = (uint32_t)plan->pid, exec_count = 0;
    /* A process that is known already keeps its entry, and the number of its execs. */
    int r = bpf_map__update_elem(
        set->skeleton->maps.processes, &pid, sizeof pid, &exec_count, sizeof exec_count, BPF_NOEXIST);
    if (r < 0 && r != -EEXIST)
        return problem_set(problem, PROBLEM_FAILURE, "attach to fewer processes at once",
            "no room to follow process %u: %s", pid, strerror(-r));
    bool is_new = r == 0;
    set->exec_count = 0;
    bpf_map__lookup_elem(
        set->skeleton->maps.processes, &pid, sizeof pid, &set->exec_count, sizeof set->exec_count, 0);
    static const enum link_group order[] = {
        GROUP_FREES, GROUP_UNWINDS, GROUP_RETURNS, GROUP_CALLS, GROUP_OTHERS};
    bool can_repair = plan_throws(plan) && load_exceptions(set);
    set->avoids_throwing = !can_repair && (set->method != METHOD_SESSION || has_limited_memory(plan->pid));
    size_t links_before = set->link_count, failed = 0;
    r = 0;
    for (size_t i = 0; i < sizeof order / sizeof *order && r >= 0; i++)
        if (order[i] != GROUP_RETURNS || set->method != METHOD_SESSION)
            r = attach_group(set, plan, order[i], &failed);
    if (r >= 0) {
        if (set->avoids_throwing) warn_of_throwing(plan);
        plan->attached = plan->probe_count;
        bpf_map__delete_elem(set->skeleton->maps.expected, &pid, sizeof pid, 0);
        return 0;
    }
    drop_links(set, links_before, plan->pid);
    if (is_new) bpf_map__delete_elem(set->skeleton->maps.processes, &pid, sizeof pid, 0);
    return problem_set(problem, problem_kind_of_errno(-r),
        r == -ESRCH ? "it has ended"
        : r == -EACCES || r == -EPERM
            ? "run malloscope as root"
            : "please report this, with the output of malloscope attach --plan and the kernel's version",
        "cannot put probes for %s into process %u ('%s'): %s", plan->probes[failed].function, pid,
        plan->probes[failed].module, strerror(-r));
}

enum probe_method probe_method(const struct probe_set *set) {
    return set->method;
}

/* ---- receiving ---- */

/* Takes all frees out of the queue in which the kernel side puts them while the ring buffer is full. */
static struct late_free *fetch_late_frees(const struct probe_set *set, size_t *ret_count) {
    int queue = bpf_map__fd(set->skeleton->maps.late_frees);
    struct late_free *all = NULL, late;
    size_t count = 0, room = 0;
    while (bpf_map_lookup_and_delete_elem(queue, NULL, &late) == 0) {
        if (count == room) {
            room = room ? 2 * room : 64;
            all = memory_reallocate(all, room * sizeof *all);
        }
        all[count++] = late;
    }
    *ret_count = count;
    return all;
}

static void tell_late_free(const struct probe_set *set, const struct late_free *late) {
    struct event_free told = {.event = {.kind = EVENT_FREE, .time = late->time}, .block = late->block};
    set->handler(set->context, &told.event);
}

int probe_poll(struct probe_set *set, int timeout_ms, probe_handler handler, void *context) {
    set->handler = handler;
    set->context = context;
    int waited = timeout_ms > 0 ? ring_buffer__poll(set->ring, timeout_ms) : 0;
    /* The queue is emptied before the ring is read. The allocation of each block in the queue has been in the
     * ring since before its free, so the handler is told of the allocation first. The ring is read even if the
     * wait ended by the timeout: most events do not wake the tool. */
    size_t late_count;
    struct late_free *late = fetch_late_frees(set, &late_count);
    int consumed = ring_buffer__consume(set->ring);
    for (size_t i = 0; i < late_count; i++) tell_late_free(set, &late[i]);
    free(late);
    if (waited < 0) return waited;
    return consumed < 0 ? consumed : waited + consumed + (int)late_count;
}

void probe_read_counters(const struct probe_set *set, uint64_t ret_counters[COUNTERS]) {
    memset(ret_counters, 0, COUNTERS * sizeof *ret_counters);
    int processors = libbpf_num_possible_cpus();
    if (processors <= 0) return;
    uint64_t(*all)[COUNTERS] = memory_allocate_array((size_t)processors, sizeof *all);
    uint32_t zero = 0;
    if (bpf_map_lookup_elem(bpf_map__fd(set->skeleton->maps.counters), &zero, all) == 0)
        for (int i = 0; i < processors; i++)
            for (int k = 0; k < COUNTERS; k++) ret_counters[k] += all[i][k];
    free(all);
}

void probe_each_thread(const struct probe_set *set, probe_thread_handler handler, void *context) {
    int map = bpf_map__fd(set->skeleton->maps.threads);
    struct thread thread;
    uint32_t key, *previous = NULL;
    while (bpf_map_get_next_key(map, previous, &key) == 0) {
        if (bpf_map_lookup_elem(map, &key, &thread) == 0)
            handler(context, thread.pid, thread.tid, &thread.figures);
        previous = &key;
    }
}

void probe_set_stack_end(struct probe_set *set, uint32_t tid, uint64_t address) {
    bpf_map__update_elem(set->skeleton->maps.stack_ends, &tid, sizeof tid, &address, sizeof address, BPF_ANY);
    set->skeleton->bss->has_stack_ends = 1;
}

/* ---- ending ---- */

#define FORGOTTEN_AT_ONCE 4096

/* Removes the blocks of a program that the process does not run any more, so that they take no room. The kernel
 * side does not touch them: their keys have the number of a former exec. */
static void forget_blocks(struct probe_set *set, uint32_t pid) {
    uint32_t exec_count = 0;
    bool is_running = bpf_map__lookup_elem(set->skeleton->maps.processes, &pid, sizeof pid, &exec_count,
                          sizeof exec_count, 0) == 0;
    int map = bpf_map__fd(set->skeleton->maps.live);
    struct live_key *keys = memory_allocate_array(FORGOTTEN_AT_ONCE, sizeof *keys);
    uint64_t *blocks = memory_allocate_array(FORGOTTEN_AT_ONCE, sizeof *blocks), place;
    uint32_t count = FORGOTTEN_AT_ONCE;
    int r = bpf_map_lookup_batch(map, NULL, &place, keys, blocks, &count, NULL);
    while (r == 0 || (r == -ENOENT && count > 0)) {
        for (uint32_t i = 0; i < count; i++)
            if (keys[i].pid == pid && (!is_running || keys[i].exec_count != exec_count))
                bpf_map_delete_elem(map, &keys[i]);
        if (r == -ENOENT) break; /* -ENOENT: this batch was the last one */
        count = FORGOTTEN_AT_ONCE;
        r = bpf_map_lookup_batch(map, &place, &place, keys, blocks, &count, NULL);
    }
    free(keys);
    free(blocks);
}

void probe_detach_process(struct probe_set *set, pid_t pid) {
    probe_links_close_later(&set->closer, withdraw_links(set, 0, pid));
    forget_blocks(set, (uint32_t)pid);
}

void probe_detach(struct probe_set *set) {
    if (set->skeleton && set->skeleton->bss) set->skeleton->bss->is_detaching = 1;
    drop_links(set, 0, 0);
}

void probe_close(struct probe_set *set) {
    if (!set) return;
    probe_detach(set);
    probe_links_wait(&set->closer);
    free(set->links);
    ring_buffer__free(set->ring);
    exception_bpf__destroy(set->exceptions);
    heap_bpf__destroy(set->skeleton);
    free(set);
}
