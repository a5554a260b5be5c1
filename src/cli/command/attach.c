#include "attach/session/resident.h"
#include "attach/session/session.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/nanoseconds.h"
#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/options/sampling_options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS  100
#define LEVEL_MS 100
/* Sizes of the ring buffer of events. Eight threads that allocate at full speed fill this much before a busy machine
 * schedules the tool again; with smaller rings events were lost. */
#define RING_EXACT   (UINT64_C(64) << 20)
#define RING_SAMPLED (UINT64_C(16) << 20)
#define RING_BY_MODE UINT64_MAX /* the user has not said */

enum via { VIA_BEST, VIA_BPF, VIA_SMAPS };
static const char *const via_names[] = {"best", "bpf", "smaps", NULL};

struct attach {
    int pid;
    const char *output;
    bool force, quiet, follow, plan, frame_pointers;
    struct sampling_options sampling;
    uint64_t size_max, stack, blocks, ring;
    double duration, baseline; /* seconds, 0 = not given */
    int via;
};

static const char about[] =
    "Records the heap of a program that is running already, without a restart and without loading code\n"
    "into it: by probes in the kernel (eBPF uprobes). It needs root. Ctrl-C, the end of -d or the end of\n"
    "the program end it; the program runs on as before.\n\n"
    "Blocks that were allocated before the attach are not known: their frees are counted, and the count\n"
    "is shown. Where eBPF cannot be used, the size of the program's memory is recorded over time, without\n"
    "attribution.";

static const char examples[] = "  sudo malloscope attach 1234\n"
                               "  sudo malloscope attach --exact -d 30s -o server.mscope $(pidof server)\n"
                               "  sudo malloscope attach --plan 1234";

/* Stopping */

static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static void stop_on_signals(void) {
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static double now(void) {
    return 1e-9 * (double)nanoseconds_now(CLOCK_MONOTONIC);
}

/* Names of recordings */

static char *program_name(int pid) {
    char path[64], name[64] = "program";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = '\0';
    if (file) fclose(file);
    for (char *c = name; *c; c++)
        if (*c == '/' || (unsigned char)*c < ' ') *c = '_';
    return memory_copy_text(name);
}

/* A child that becomes another program by exec gets one more recording: "x.PID.mscope", "x.PID.2.mscope", ... */
static char *unused_path(const char *stem) {
    char *path = memory_format_text("%s.mscope", stem);
    for (int i = 2; access(path, F_OK) == 0; i++) {
        free(path);
        path = memory_format_text("%s.%d.mscope", stem, i);
    }
    return path;
}

/* The path of the recording of process `pid`. -o names the recording of the program itself, or a folder. Recordings
 * of its children get their pid added to that name. */
static char *path_of(void *context, int pid) {
    const struct attach *attach = context;
    cleanup_text char *name = program_name(pid);
    cleanup_text char *plain = memory_format_text("malloscope.%s.%d", name, pid);
    cleanup_text char *here = getcwd(NULL, 0);
    struct stat status;
    bool folder = attach->output && stat(attach->output, &status) == 0 && S_ISDIR(status.st_mode);
    bool is_child = pid != attach->pid, is_named = attach->output && !folder;
    cleanup_text char *stem = folder      ? memory_format_text("%s/%s", attach->output, plain)
                              : !is_named ? memory_copy_text(plain)
                                          : memory_format_text("%s.%d", attach->output, pid);
    cleanup_text char *chosen = is_child   ? unused_path(stem)
                                : is_named ? memory_copy_text(attach->output)
                                           : memory_format_text("%s.mscope", stem);
    return chosen[0] == '/' || !here ? memory_copy_text(chosen) : memory_format_text("%s/%s", here, chosen);
}

/* The status line */

struct screen {
    bool wanted;
    double start, shown;
    uint64_t events;
    double probe_seconds;
};

static void screen_clear(const struct screen *screen) {
    if (screen->wanted && screen->shown > 0) fputs("\r\033[K", stderr);
}

static void screen_show(struct screen *screen, const struct session_status *status) {
    double moment = now(), passed = moment - (screen->shown > 0 ? screen->shown : screen->start);
    if (!screen->wanted || passed < 0.5) return;
    uint64_t events = status->samples + status->frees;
    double share = (status->probe_seconds - screen->probe_seconds) / passed;
    /* The most important first: a field that does not fit into the line is left out. */
    char *fields[] = {
        memory_copy_text(units_seconds(moment - screen->start).text),
        memory_format_text("live %s", units_bytes(status->live_bytes).text),
        status->lost ? memory_format_text("lost %s", units_count((double)status->lost).text) : NULL,
        memory_format_text("peak %s", units_bytes(status->peak_bytes).text),
        memory_format_text("%s events/s", units_count((double)(events - screen->events) / passed).text),
        memory_format_text("probes take %s of a processor", units_percent(share).text),
    };
    size_t width = terminal_of(stderr).width, used = 0;
    fputc('\r', stderr);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t needed = fields[i] ? text_width(fields[i]) + (used ? 3 : 0) : 0;
        if (needed && (!width || used + needed < width)) {
            fprintf(stderr, used ? " %s %s" : "%.0s%s", terminal_glyphs()->dot, fields[i]);
            used += needed;
        }
        free(fields[i]);
    }
    fputs("\033[K", stderr);
    fflush(stderr);
    screen->shown = moment;
    screen->events = events;
    screen->probe_seconds = status->probe_seconds;
}

/* Recording by probes (eBPF) */

static void say_end(const struct attach *attach, const struct session_status *status) {
    if (status->target_changed)
        message_note("process %d became another program by exec: its recording ends there", attach->pid);
    else if (status->target_ended && !attach->quiet)
        message_note("process %d has ended", attach->pid);
}

static char *rest_text(const struct session_status *status) {
    cleanup_text char *others = NULL, *missed = NULL;
    if (status->recordings > 1)
        others = memory_format_text("and %s of processes it started",
            units_counted((double)status->recordings - 1, "more recording").text);
    if (status->late || status->missed)
        missed =
            memory_format_text("of the processes it started, %s ended before probes were in them, and %s ran "
                               "for some milliseconds before: what they allocated then is missing",
                units_count((double)status->missed).text, units_count((double)status->late).text);
    if (!others && !missed) return NULL;
    return memory_format_text(
        "%s%s%s", others ? others : "", others && missed ? "\n  " : "", missed ? missed : "");
}

static void say_what_is_not_seen(const struct session *session) {
    size_t count;
    const struct plan_note *warnings = session_warnings(session, &count);
    for (size_t i = 0; i < count; i++)
        if (!warnings[i].is_doubt)
            message_note("not all allocations are seen: %s %s", warnings[i].what, warnings[i].why);
}

static int follow(const struct attach *attach, struct session *session) {
    struct screen screen = {.wanted = !attach->quiet && terminal_of(stderr).is_terminal, .start = now()};
    cleanup_text char *path = memory_copy_text(session_path(session));
    if (!attach->quiet)
        message_note("attached to process %d by %s; Ctrl-C to stop", attach->pid,
            kernel_support_method_name(session_method(session)));
    if (!attach->quiet) say_what_is_not_seen(session);
    bool baseline_due = attach->baseline > 0;
    struct session_status status = {0};
    while (!stopped) {
        int r = session_poll(session, POLL_MS);
        if (r < 0 && r != -EINTR) break;
        double passed = now() - screen.start;
        if (baseline_due && passed >= attach->baseline) {
            session_set_baseline(session);
            baseline_due = false;
        }
        status = session_status(session);
        screen_show(&screen, &status);
        if (attach->duration > 0 && passed >= attach->duration) break;
        if (status.processes == 0) break;
    }
    double seconds = now() - screen.start;
    screen_clear(&screen);
    session_detach(session);
    status = session_status(session);
    session_close(session);
    say_end(attach, &status);
    if (status.not_followed)
        message_note(
            "%llu of its children could not be followed: no allocator was found in them within 2 seconds; "
            "attach to such a process by its own number",
            (unsigned long long)status.not_followed);
    cleanup_text char *more = rest_text(&status);
    if (!attach->quiet) outcome_print(path, seconds, (struct outcome_more){.recordings = more});
    return 0;
}

/* Without probes: recording the size of the memory */

static int watch_size(const struct attach *attach) {
    struct problem problem = {0};
    cleanup_text char *path = path_of((void *)attach, attach->pid);
    struct collector *collector;
    struct collector_options options = {
        .path = path,
        .replace = attach->force,
        .pid = attach->pid,
        .rate = 1,
        .depth = (uint32_t)attach->sampling.depth,
        .size_max = attach->size_max,
        .allocator = "",
        .levels_only = true,
    };
    uint64_t bytes;
    if (!resident_anonymous(attach->pid, &bytes))
        return message_error(errno == ENOENT ? PROBLEM_MISSING : problem_kind_of_errno(errno),
            "check the number with ps; another user's process needs root",
            "cannot read the memory of process %d: %s", attach->pid, strerror(errno));
    if (collector_open(&options, &collector, &problem) < 0) return message_problem(&problem);
    if (!attach->quiet)
        message_note(
            "recording the size of process %d's memory over time, without attribution; Ctrl-C to stop",
            attach->pid);
    double start = now();
    while (!stopped && resident_anonymous(attach->pid, &bytes)) {
        struct timespec pause = {0, LEVEL_MS * 1000000};
        collector_note_level(collector, bytes, nanoseconds_now(CLOCK_MONOTONIC));
        if (attach->duration > 0 && now() - start >= attach->duration) break;
        nanosleep(&pause, NULL);
    }
    double peak = collector_figures(collector).peak_bytes;
    collector_close(collector);
    if (!attach->quiet) {
        cleanup_text char *shown = outcome_path(path);
        fprintf(stderr, "malloscope: recorded %s\n  %s %s peak %s of memory that no file is behind\n", shown,
            units_seconds(now() - start).text, terminal_glyphs()->dot, units_bytes(peak).text);
        message_hint(
            "there is no attribution in this recording: 'malloscope timeline' shows its size over time");
    }
    return 0;
}

/* The command */

/* The plan names files and functions of the target, which may be hostile: each line is cleaned. */
static int show_plan(int pid) {
    struct problem problem = {0};
    struct plan *plan;
    if (plan_make(pid, &plan, &problem) < 0) return message_problem(&problem);
    cleanup_text char *text = NULL;
    size_t size = 0;
    FILE *memory = memory_stream_open(&text, &size);
    plan_print(memory, plan);
    memory_stream_close(memory);
    plan_free(plan);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) && rest;) {
        cleanup_text char *clean = text_clean(line);
        puts(clean);
    }
    return message_finish_output();
}

static int run(struct attach *attach) {
    struct session_options options = {
        .pid = attach->pid,
        .follow = attach->follow,
        .depth = (uint32_t)attach->sampling.depth,
        .size_max = attach->size_max,
        .replace = attach->force,
        .probes = probe_options_default,
        .path_of = path_of,
        .context = attach,
    };
    options.probes.rate = attach->sampling.rate;
    options.probes.frame_pointers = attach->frame_pointers;
    options.probes.stack_bytes = (uint32_t)attach->stack;
    options.probes.live_blocks = (uint32_t)attach->blocks;
    options.probes.ring_bytes = (uint32_t)attach->ring;
    struct problem problem = {0};
    struct session *session;
    enum probe_trouble trouble;
    stop_on_signals();
    if (attach->via == VIA_SMAPS) return watch_size(attach);
    if (session_open(&options, &session, &trouble, &problem) == 0) return follow(attach, session);
    int code = message_problem(&problem);
    bool can_watch = trouble != PROBE_FINE && problem.kind != PROBLEM_USAGE;
    return can_watch && attach->via != VIA_BPF ? watch_size(attach) : code;
}

static int check_sizes(struct attach *attach) {
    if (attach->ring == RING_BY_MODE) attach->ring = attach->sampling.exact ? RING_EXACT : RING_SAMPLED;
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = {{"--stack", attach->stack}, {"--blocks", attach->blocks}, {"--ring", attach->ring}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].value == 0 || sizes[i].value > INT32_MAX)
            return message_error(PROBLEM_USAGE, "choose a number between 1 and 2 billion",
                "%s %llu is not possible", sizes[i].name, (unsigned long long)sizes[i].value);
    return 0;
}

static int check_options(struct attach *attach) {
    if (attach->duration > 0 && attach->baseline >= attach->duration)
        return message_error(PROBLEM_USAGE, "choose a longer --duration, or a shorter --baseline",
            "it would stop before the figures begin: --baseline is not shorter than --duration");
    struct sampling_options *sampling = &attach->sampling;
    int code = sampling_options_check(sampling);
    if (code) return code;
    if (sampling->rate == SAMPLING_DEFAULT) sampling->rate = probe_options_default.rate;
    if (sampling->depth == SAMPLING_DEFAULT) sampling->depth = DEFAULT_DEPTH;
    if (sampling->rate > UINT32_MAX)
        return message_error(PROBLEM_USAGE, "choose a rate from 1, which records every allocation, to 4G",
            "a rate of %llu is not possible", (unsigned long long)sampling->rate);
    return check_sizes(attach);
}

int command_attach(int argc, char **argv) {
    struct attach attach = {.sampling = SAMPLING_OPTIONS_NONE,
        .size_max = DEFAULT_SIZE_MAX,
        .stack = probe_options_default.stack_bytes,
        .blocks = probe_options_default.live_blocks,
        .ring = RING_BY_MODE};
    struct option_rule rules[] = {
        SAMPLING_RATE_RULES(attach.sampling),
        {'d', "duration", OPTION_SECONDS, &attach.duration, "TIME", .help = "stop after this time: 30s, 5m"},
        {0, "baseline", OPTION_SECONDS, &attach.baseline, "TIME",
            .help = "the figures begin after this time: what was allocated\nbefore is not counted"},
        {'o', "output", OPTION_FILE, &attach.output, "FILE",
            .help = "name of the recording, or a folder for it", .environment = "MALLOSCOPE_OUTPUT"},
        {'f', "force", OPTION_ON, &attach.force, NULL, .help = "replace the recording if it exists",
            .environment = "MALLOSCOPE_FORCE"},
        {'q', "quiet", OPTION_ON, &attach.quiet, NULL, .help = "print no status and no summary",
            .environment = "MALLOSCOPE_QUIET"},
        {0, "follow", OPTION_ON, &attach.follow, NULL,
            .help = "record the processes that it starts from now on, too"},
        {0, "plan", OPTION_ON, &attach.plan, NULL, .help = "only show where probes would go, and why"},
        {0, "via", OPTION_CHOICE, &attach.via, "WAY",
            .help = "bpf: probes in the kernel; smaps: only the size over time;\nbest (the default): the "
                    "first that works",
            .choices = via_names},
        SAMPLING_DEPTH_RULE(attach.sampling),
        {0, "stack", OPTION_SIZE, &attach.stack, "N",
            .help = "copy up to N bytes of a stack (default 16K, at most 64K)"},
        {0, "frame-pointers", OPTION_ON, &attach.frame_pointers, NULL,
            .help =
                "follow frame pointers in place of copying the stack:\ncheaper, but most programs have none"},
        {0, "blocks", OPTION_COUNT, &attach.blocks, "N",
            .help = "track up to N blocks at once (default 1 million)"},
        {0, "ring", OPTION_SIZE, &attach.ring, "N",
            .help = "buffer for events that are not yet fetched, a power of two\n(default 16M, with --exact "
                    "64M)"},
        {0, "max-size", OPTION_SIZE, &attach.size_max, "N",
            .help = "let the recording grow up to N bytes (default " DEFAULT_SIZE_MAX_TEXT ")",
            .environment = "MALLOSCOPE_MAX_SIZE"},
    };
    struct command_line line = {.name = "attach",
        .usage = "malloscope attach [OPTION]... PID",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_min = 1,
        .arguments_max = 1,
        .argument_kind = ARGUMENT_PROCESS};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    uint64_t pid;
    if (!units_parse_count(line.arguments[0], &pid) || pid == 0 || pid > INT32_MAX)
        return message_error(PROBLEM_USAGE, "name a process by its number: see 'ps' or 'pgrep -a NAME'",
            "'%s' is not a process number", line.arguments[0]);
    attach.pid = (int)pid;
    code = check_options(&attach);
    if (code) return code;
    return attach.plan ? show_plan(attach.pid) : run(&attach);
}
