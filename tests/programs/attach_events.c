/* Attaches to a process and prints what the kernel tells, one JSON object a line: for the tests of src/attach/bpf.
 *
 *     attach_events [OPTION...] PID       until standard input is closed or the process ends
 *     attach_events --plan PID            the probe plan, for people
 *     attach_events --repeat N PID        attaches and detaches N times; tells how many descriptors are open before
 *                                         and after
 *     attach_events --check               whether it can work here
 *
 * It always closes with the line of kind "totals". */
#include "attach/bpf/probe.h"
#include "core/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct block {
    uint64_t number, size;
};

static struct {
    bool quiet, follow, dump_stacks;
    int slow_ms;
    void *blocks; /* of tsearch */
    uint64_t allocations, bytes, frees, live_blocks, live_bytes, strange_frees, ended, replaced;
    double estimated_bytes, estimated_objects, variance;
    uint64_t rate;
    struct probe_set *set;
    struct plan *plans[64];
    int plan_count;
    int processes; /* that are followed and have not ended */
    int fresh[64]; /* processes that run another program since an exec and have no probes yet */
    int fresh_count;
} driver;

static int by_number(const void *a, const void *b) {
    const struct block *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void fail(const struct problem *problem) {
    printf("{\"kind\": \"problem\", \"code\": %d, \"what\": \"%s\", \"remedy\": \"%s\"}\n", problem->kind,
        problem->what, problem->remedy);
    exit(problem->kind);
}

static bool try_attach(int pid, struct problem *problem) {
    struct plan *plan;
    if (plan_make(pid, &plan, problem) < 0 || probe_attach(driver.set, plan, problem) < 0) return false;
    driver.plans[driver.plan_count++] = plan;
    driver.processes++;
    printf("{\"kind\": \"attached\", \"pid\": %d, \"method\": \"%s\", \"probes\": %zu, \"warnings\": %zu}\n",
        pid, kernel_support_method_name(probe_method(driver.set)), plan->probe_count, plan->warning_count);
    return true;
}

static void attach(int pid) {
    struct problem problem = {0};
    if (!try_attach(pid, &problem)) fail(&problem);
}

/* The event of an exec can come before the loader has mapped the libraries. No allocator is found then, so
 * it is tried again after each poll until there is one. */
static void attach_fresh(void) {
    int kept = 0;
    for (int i = 0; i < driver.fresh_count; i++) {
        struct problem problem = {0};
        if (try_attach(driver.fresh[i], &problem)) continue;
        if (kill(driver.fresh[i], 0) < 0) fail(&problem);
        driver.fresh[kept++] = driver.fresh[i];
    }
    driver.fresh_count = kept;
}

static struct plan *plan_of(uint32_t pid) {
    for (int i = driver.plan_count - 1; i >= 0; i--)
        if (driver.plans[i]->pid == (pid_t)pid) return driver.plans[i];
    return NULL;
}

static void end_block(uint64_t number) {
    struct block key = {.number = number}, **found = tfind(&key, &driver.blocks, by_number);
    if (!found) {
        driver.strange_frees++;
        return;
    }
    struct block *block = *found;
    driver.live_blocks--;
    driver.live_bytes -= block->size;
    tdelete(&key, &driver.blocks, by_number);
    free(block);
}

static void on_allocation(const struct event_allocation *told) {
    struct block *block = malloc(sizeof *block);
    *block = (struct block){told->block, told->size};
    struct block **place = tsearch(block, &driver.blocks, by_number);
    if (*place != block) driver.strange_frees++; /* a number was used twice */
    driver.allocations++;
    driver.bytes += told->size;
    uint64_t weight = sampler_weight(told->size, driver.rate);
    driver.estimated_bytes += (double)weight / BYTE_ONE;
    driver.variance += (double)weight / BYTE_ONE * ((double)weight / BYTE_ONE - (double)told->size);
    driver.estimated_objects += (double)sampler_objects(told->size, weight) / OBJECT_ONE;
    driver.live_blocks++;
    driver.live_bytes += told->size;
    if (told->ended) {
        driver.ended++;
        end_block(told->ended);
    }
    if (told->replaced) {
        driver.replaced++;
        end_block(told->replaced);
    }
}

static void print_allocation(const struct event_allocation *told) {
    printf(", \"block\": %llu, \"address\": %llu, \"size\": %llu, \"ended\": %llu, \"replaced\": %llu, "
           "\"ip\": %llu, "
           "\"sp\": %llu, \"bx\": %llu, \"r12\": %llu, \"stack_kind\": %u, \"stack_flags\": %u, "
           "\"stack_size\": %u",
        told->block, told->address, told->size, told->ended, told->replaced, told->registers.ip,
        told->registers.sp, told->registers.bx, told->registers.r12, told->stack_kind, told->stack_flags,
        told->stack_size);
    if (!driver.dump_stacks) return;
    printf(", \"stack\": [");
    for (uint32_t i = 0; i + 8 <= told->stack_size; i += 8) {
        uint64_t word;
        memcpy(&word, told->stack + i, sizeof word);
        printf("%s%llu", i ? ", " : "", (unsigned long long)word);
    }
    printf("]");
}

static const char *kind_name(uint32_t kind) {
    static const char *const names[] = {[EVENT_ALLOCATION] = "allocation",
        [EVENT_FREE] = "free",
        [EVENT_THREAD] = "thread",
        [EVENT_THREAD_END] = "thread end",
        [EVENT_FORK] = "fork",
        [EVENT_EXEC] = "exec",
        [EVENT_PROCESS_END] = "process end",
        [EVENT_MODULES] = "modules"};
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "?";
}

static void print_event(const struct event *event) {
    printf("{\"kind\": \"%s\", \"pid\": %u, \"tid\": %u, \"image\": %u, \"time\": %llu",
        kind_name(event->kind), event->pid, event->tid, event->exec_count, event->time);
    if (event->kind == EVENT_ALLOCATION) print_allocation((const struct event_allocation *)event);
    if (event->kind == EVENT_FREE) printf(", \"block\": %llu", ((const struct event_free *)event)->block);
    if (event->kind == EVENT_FORK) printf(", \"child\": %u", ((const struct event_fork *)event)->child);
    if (event->kind == EVENT_THREAD || event->kind == EVENT_THREAD_END) {
        const struct event_thread *told = (const struct event_thread *)event;
        printf(", \"name\": \"%s\", \"bytes\": %llu, \"allocations\": %llu, \"frees\": %llu", told->name,
            told->figures.bytes, told->figures.allocations, told->figures.frees);
    }
    printf("}\n");
}

static void on_event(void *context, const struct event *event) {
    (void)context;
    if (event->kind == EVENT_ALLOCATION) on_allocation((const struct event_allocation *)event);
    if (event->kind == EVENT_FREE) {
        driver.frees++;
        end_block(((const struct event_free *)event)->block);
    }
    if (!driver.quiet || event->kind > EVENT_FREE) print_event(event);
    struct problem problem = {0};
    switch (event->kind) {
    case EVENT_PROCESS_END:
        driver.processes--;
        break;
    case EVENT_FORK:
        if (driver.follow && !((const struct event_fork *)event)->shares_memory)
            attach((int)((const struct event_fork *)event)->child);
        break;
    case EVENT_EXEC:
        if (!driver.follow) break;
        probe_detach_process(driver.set, (pid_t)event->pid);
        driver.processes--;
        driver.fresh[driver.fresh_count++] = (int)event->pid;
        break;
    case EVENT_MODULES: {
        struct plan *plan = plan_of(event->pid);
        if (!plan) break;
        size_t before = plan->probe_count;
        if (plan_extend(plan, &problem) < 0 || probe_attach(driver.set, plan, &problem) < 0) fail(&problem);
        printf("{\"kind\": \"extended\", \"probes\": %zu}\n", plan->probe_count - before);
        break;
    }
    }
}

static void print_thread(void *context, uint32_t pid, uint32_t tid, const struct thread_figures *figures) {
    printf("%s{\"pid\": %u, \"tid\": %u, \"bytes\": %llu, \"allocations\": %llu, \"frees\": %llu}",
        *(const char **)context, pid, tid, figures->bytes, figures->allocations, figures->frees);
    *(const char **)context = ", ";
}

static void print_totals(void) {
    static const char *const names[COUNTERS] = {"entries", "returns", "sampled", "frees", "frees_unknown",
        "failed", "nested", "lost_ring", "lost_ring_bytes", "lost_live", "lost_live_bytes", "lost_calls",
        "lost_threads", "lost_notices", "lost_children", "late_frees", "forgotten_frees", "replaced",
        "stacks_cut", "stack_holes", "foreign"};
    printf(
        "{\"kind\": \"totals\", \"allocations\": %lu, \"bytes\": %lu, \"frees\": %lu, \"live_blocks\": %lu, "
        "\"live_bytes\": %lu, \"strange_frees\": %lu, \"ended\": %lu, \"replaced\": %lu, "
        "\"estimated_bytes\": %.1f, \"estimated_objects\": %.3f, \"variance\": %.1f, \"threads\": [",
        driver.allocations, driver.bytes, driver.frees, driver.live_blocks, driver.live_bytes,
        driver.strange_frees, driver.ended, driver.replaced, driver.estimated_bytes, driver.estimated_objects,
        driver.variance);
    const char *between = "";
    probe_each_thread(driver.set, print_thread, &between);
    printf("], \"counters\": {");
    uint64_t counters[COUNTERS];
    probe_read_counters(driver.set, counters);
    for (int i = 0; i < COUNTERS; i++) printf("%s\"%s\": %lu", i ? ", " : "", names[i], counters[i]);
    printf("}}\n");
}

static bool input_is_closed(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

static void follow_events(void) {
    while ((driver.processes > 0 || driver.fresh_count > 0) && !input_is_closed()) {
        if (driver.slow_ms) {
            struct timespec pause = {
                .tv_nsec = driver.slow_ms % 1000 * 1000000L, .tv_sec = driver.slow_ms / 1000};
            nanosleep(&pause, NULL);
        }
        probe_poll(driver.set, driver.slow_ms ? 0 : 20, on_event, NULL);
        attach_fresh();
        fflush(stdout);
    }
    probe_detach(driver.set);
    while (probe_poll(driver.set, 0, on_event, NULL) > 0) continue;
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int repeat(const struct probe_options *options, int times, int pid) {
    int before = -1;
    for (int i = 0; i < times; i++) {
        struct problem problem = {0};
        enum probe_trouble trouble;
        if (probe_open(options, &driver.set, &trouble, &problem) < 0) fail(&problem);
        driver.quiet = true;
        attach(pid);
        for (int k = 0; k < 3; k++) probe_poll(driver.set, 5, on_event, NULL);
        probe_close(driver.set);
        plan_free(driver.plans[--driver.plan_count]);
        if (before < 0) before = open_descriptors(); /* libraries keep some of their own */
    }
    printf("{\"kind\": \"repeated\", \"before\": %d, \"behind\": %d, \"allocations\": %lu}\n", before,
        open_descriptors(), driver.allocations);
    return 0;
}

static int check(void) {
    enum probe_method method = METHOD_BEST;
    enum probe_trouble trouble;
    struct problem problem = {0};
    int r = kernel_support_find(&method, &trouble, &problem);
    printf(
        "{\"kind\": \"check\", \"trouble\": %d, \"method\": \"%s\", \"what\": \"%s\", \"remedy\": \"%s\"}\n",
        trouble, kernel_support_method_name(method), problem.what, problem.remedy);
    return r < 0 ? -r : 0;
}

static int print_plan(int pid) {
    struct plan *plan;
    struct problem problem = {0};
    if (plan_make(pid, &plan, &problem) < 0) fail(&problem);
    plan_print(stdout, plan);
    plan_free(plan);
    return 0;
}

int main(int argc, char **argv) {
    struct probe_options options = probe_options_default;
    static const struct option known[] = {{"rate", 1, NULL, 'r'}, {"method", 1, NULL, 'm'},
        {"live", 1, NULL, 'l'}, {"ring", 1, NULL, 'b'}, {"stack", 1, NULL, 's'}, {"frames", 0, NULL, 'f'},
        {"slow", 1, NULL, 'w'}, {"follow", 0, NULL, 'F'}, {"quiet", 0, NULL, 'q'}, {"stacks", 0, NULL, 'S'},
        {"check", 0, NULL, 'c'}, {"plan", 1, NULL, 'p'}, {"repeat", 1, NULL, 'R'}, {0}};
    int times = 0;
    options.rate = 1;
    options.ring_bytes = 16 << 20;
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'r':
            options.rate = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            options.method = optarg[0] == 's'   ? METHOD_SESSION
                             : optarg[0] == 'm' ? METHOD_MULTI
                                                : METHOD_PERF;
            break;
        case 'l':
            options.live_blocks = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'b':
            options.ring_bytes = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 's':
            options.stack_bytes = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'f':
            options.frame_pointers = true;
            break;
        case 'w':
            driver.slow_ms = atoi(optarg);
            break;
        case 'R':
            times = atoi(optarg);
            break;
        case 'F':
            driver.follow = options.follow = true;
            break;
        case 'q':
            driver.quiet = true;
            break;
        case 'S':
            driver.dump_stacks = true;
            break;
        case 'c':
            return check();
        case 'p':
            return print_plan(atoi(optarg));
        default:
            return 2;
        }
    }
    if (optind + 1 != argc) return 2;
    driver.rate = options.rate;
    if (times) return repeat(&options, times, atoi(argv[optind]));
    struct problem problem = {0};
    enum probe_trouble trouble;
    if (probe_open(&options, &driver.set, &trouble, &problem) < 0) fail(&problem);
    attach(atoi(argv[optind]));
    fflush(stdout);
    follow_events();
    print_totals();
    probe_close(driver.set);
    for (int i = 0; i < driver.plan_count; i++) plan_free(driver.plans[i]);
    return 0;
}
