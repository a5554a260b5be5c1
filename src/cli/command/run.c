#include "base/limits.h"
#include "base/memory.h"
#include "base/nanoseconds.h"
#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/options/sampling_options.h"
#include "cli/run/dump_options.h"
#include "cli/run/keep_recordings.h"
#include "cli/run/launch.h"
#include "cli/run/output_pattern.h"
#include "cli/run/program.h"
#include "cli/run/recorder_library.h"
#include "cli/run/run_recordings.h"
#include "cli/run/trim_recordings.h"
#include "cli/terminal/message.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/outcome.h"
#include "cli/words/unrecorded_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct run {
    const char *output;
    bool force, quiet, follow, merge, thread_frames, python_objects;
    uint64_t keep; /* recordings of children that stay, or KEEP_ALL */
    struct sampling_options sampling;
    int stacks;        /* index in stack_choices */
    uint64_t size_max; /* bytes; 0 = the recorder's default */
    char **arguments;  /* of the program; ends with NULL */
    char *program;
    char *pattern; /* of the recording's name (output_pattern.h), as an absolute path */
    char *library;
    struct dump_options dumps;
    struct gates gates;
    const struct gate_judge *judge; /* NULL only if no gate is set */
};

static const char *const stack_choices[] = {"both", "native", "scopes", NULL};

static const char about[] =
    "Runs a program and records its heap into a file, malloscope.PROGRAM.PID.mscope unless -o says\n"
    "otherwise. A library is preloaded into the program that takes the place of malloc and its relatives\n"
    "(interposition) and samples the calls. The program's exit status is passed on. If the recorder\n"
    "cannot start, the program runs on unrecorded. Programs that it starts or forks get recordings of\n"
    "their own, unless --no-follow; those that cannot carry the recorder run without it and are named at\n"
    "the end.\n\n"
    "The name of the recording may hold %p (pid), %e (program), %h (host), %t (time in seconds) and %n (a\n"
    "counter that makes the name new). The file is always whole: it can be read while the program runs,\n"
    "and after kill -9. Dumps are copies besides it, which the program itself makes when --dump-at or\n"
    "--signal say so; to copy what is recorded at some moment, 'malloscope dump PID' costs the program\n"
    "less.\n\n"
    "Gates are for tests: with --leaks-fail, --peak-limit or --max-allocs the exit status is 6 if the\n"
    "program itself ends well, but a figure of its recording is above the limit; the sites responsible\n"
    "are printed. In a sampled recording the lower end of the 95 % interval must be above it. Programs\n"
    "that it starts are not judged.\n\n"
    "An existing LD_PRELOAD is kept; MALLOSCOPE_LIBRARY names another recorder library.";

static const char examples[] = "  malloscope run -- ./server --port 8080\n"
                               "  malloscope run --rate 64K -o /tmp/%e.%p.mscope -- python3 script.py\n"
                               "  malloscope run --exact -f -o test.mscope -- ./unit-test\n"
                               "  malloscope run --dump /tmp/%e.%n.heap --dump-at exit,10s -- ./server\n"
                               "  malloscope run --exact --leaks-fail --junit heap.xml -- ./unit-test\n"
                               "  MALLOSCOPE_RATE=1M malloscope run make -j8";

/* The environment: how the recorder library is told what to do */

static void set_number(const char *name, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    memory_set_variable(name, text);
}

/* The recorder compares this pid with its own to know whether it records the program that `run` started or a child of
 * that. The pid is known only in the child process, which writes it into this text just before exec (launch.h). */
#define ROOT "MALLOSCOPE_ROOT="
static char root[sizeof ROOT + PID_TEXT_SIZE] = ROOT;

static void set_environment(const struct run *run) {
    cleanup_text char *preload = recorder_library_preload_value(run->library, getenv("LD_PRELOAD"));
    memory_set_variable("LD_PRELOAD", preload);
    memory_set_variable("MALLOSCOPE_OUTPUT", run->pattern);
    memory_set_variable("MALLOSCOPE_FOLLOW", run->follow ? "1" : "0");
    memory_set_variable("MALLOSCOPE_FORCE", run->force ? "1" : "0");
    if (run->sampling.rate != SAMPLING_DEFAULT) set_number("MALLOSCOPE_RATE", run->sampling.rate);
    if (run->sampling.depth != SAMPLING_DEFAULT) set_number("MALLOSCOPE_DEPTH", run->sampling.depth);
    memory_set_variable("MALLOSCOPE_STACKS", stack_choices[run->stacks]);
    if (run->thread_frames) memory_set_variable("MALLOSCOPE_THREAD_FRAMES", "1");
    if (run->python_objects) memory_set_variable("MALLOSCOPE_PYTHON_OBJECTS", "1");
    if (run->size_max) set_number("MALLOSCOPE_MAX_SIZE", run->size_max);
    dump_options_set_environment(&run->dumps);
    if (putenv(root) != 0) memory_is_short();
}

/* After the program has ended */

static void tell_signal(int status) {
    if (WIFSIGNALED(status))
        message_note(
            "the program was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static void print_summary(const struct run_recordings *recordings, int status, double seconds) {
    tell_signal(status);
    cleanup_text char *more = NULL;
    if (recordings->child_count) {
        cleanup_text char *first = outcome_path(recordings->children[0]);
        more = memory_format_text("and %zu more recording%s of programs it started or became, such as %s",
            recordings->child_count, recordings->child_count == 1 ? "" : "s", first);
    }
    cleanup_text char *unrecorded = unrecorded_text(&recordings->unrecorded);
    outcome_print(recordings->main, seconds, (struct outcome_more){unrecorded, more});
}

static void tell_result(
    const struct run *run, const struct run_recordings *recordings, int status, double seconds) {
    if (recordings->main) {
        print_summary(recordings, status, seconds);
        return;
    }
    message_error(PROBLEM_FAILURE,
        "if the recorder could not start, it has said why; a file that is deleted while the program runs "
        "can be saved with 'malloscope dump PID -o FILE' as long as it runs",
        "there is no recording of '%s' at '%s'", run->arguments[0], run->pattern);
    if (recordings->child_count)
        message_note("%zu of the programs it started %s recorded, such as %s", recordings->child_count,
            recordings->child_count == 1 ? "was" : "were", recordings->children[0]);
}

/* The exit code if memory runs out after the program has ended: that of the program, since the lack of memory is not
 * its failure. But gates that could not be judged must not pass. */
static int code_without_memory(const struct run *run, int status) {
    if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    if (status) return WEXITSTATUS(status);
    return gates_are_set(&run->gates) ? PROBLEM_FAILURE : 0;
}

/* Merges the recordings and says so. Returns `code`, or that of the failure. */
static int merge(const struct run *run, const struct run_recordings *recordings, int status, int code) {
    struct problem problem = {0};
    cleanup_text char *archive = NULL;
    if (!run->quiet) tell_signal(status);
    if (keep_recordings_merged(recordings, run->force, run->quiet, &archive, &problem) < 0) {
        int failure = message_problem(&problem);
        return code ? code : failure;
    }
    cleanup_text char *path = outcome_path(archive);
    cleanup_text char *word = text_shell_word(path);
    if (!run->quiet) fprintf(stderr, "  next: malloscope report %s\n", word);
    return code;
}

/* Returns the exit code. If the program failed by itself, that is the exit code of the program, whatever the gates
 * say. */
static int finish(struct run *run, const struct launched *launched, uint64_t start) {
    memory_short_ends_with(code_without_memory(run, launched->status));
    double seconds = 1e-9 * (double)(nanoseconds_now(CLOCK_REALTIME) - start);
    int code = 0;
    struct run_recordings recordings;
    run_recordings_find(run->pattern, launched->pid, start, &recordings);
    trim_recordings(&recordings);
    keep_recordings(&recordings, run->keep);
    bool merges = run->merge && recordings.main;
    if (!run->quiet && !merges) tell_result(run, &recordings, launched->status, seconds);
    if (gates_are_set(&run->gates)) {
        struct gated_run gated = {recordings.main, run->arguments[0], launched->status, seconds, run->quiet};
        code = run->judge->judge(&run->gates, &gated);
    }
    if (merges) code = merge(run, &recordings, launched->status, code);
    run_recordings_free(&recordings);
    return launched->status ? launch_pass_on(launched->status) : code;
}

/* Before the program starts */

static int check_options(struct run *run) {
    int code = sampling_options_check(&run->sampling);
    if (code) return code;
    if (!gates_are_set(&run->gates) && (run->gates.junit_path || run->gates.suppressions_path))
        return message_error(PROBLEM_USAGE, "add --leaks-fail, --peak-limit or --max-allocs",
            "--%s is for gates, and there is none", run->gates.junit_path ? "junit" : "suppressions");
    bool exact = run->sampling.exact;
    uint64_t least =
        exact ? UINT64_C(16) << 20 : UINT64_C(2) << 20; /* the tables as they start, and some growth */
    if (run->size_max && run->size_max < least)
        return message_error(PROBLEM_USAGE, "leave --max-size out: the recording grows only as it needs to",
            "--max-size must be at least %s%s", units_bytes((double)least).text,
            exact ? " with --exact" : "");
    return 0;
}

static int prepare(struct run *run) {
    struct problem problem = {0};
    cleanup_text char *warning = NULL;
    if (program_find(run->arguments[0], &run->program, &problem) < 0 ||
        program_check(run->program, &warning, &problem) < 0 ||
        output_pattern_prepare(run->output, run->force, &run->pattern, &problem) < 0 ||
        dump_options_prepare(&run->dumps, &problem) < 0 ||
        recorder_library_find(&run->library, &problem) < 0 ||
        (gates_are_set(&run->gates) && run->judge->prepare(&run->gates, &problem) < 0))
        return message_problem(&problem);
    if (warning && !run->quiet) message_note("%s", warning);
    return 0;
}

int command_run(int argc, char **argv, const struct gate_judge *judge) {
    struct run run = {.follow = true,
        .keep = KEEP_ALL,
        .sampling = SAMPLING_OPTIONS_NONE,
        .gates = GATES_NONE,
        .judge = judge};
    struct option_rule rules[] = {
        {'o', "output", OPTION_FILE, &run.output, "FILE", .help = "name of the recording, or a folder for it",
            .environment = "MALLOSCOPE_OUTPUT"},
        {'f', "force", OPTION_ON, &run.force, NULL, .help = "replace the recording if it exists",
            .environment = "MALLOSCOPE_FORCE"},
        {'q', "quiet", OPTION_ON, &run.quiet, NULL, .help = "print no summary at the end",
            .environment = "MALLOSCOPE_QUIET"},
        SAMPLING_RATE_RULES(run.sampling),
        SAMPLING_DEPTH_RULE(run.sampling),
        {0, "stacks", OPTION_CHOICE, &run.stacks, "WHAT",
            .help = "what stacks are made of: both (default), native alone, without\nPython's frames and "
                    "scopes, or scopes: the program's own\n(malloscope.h), which are cheaper",
            .choices = stack_choices, .environment = "MALLOSCOPE_STACKS"},
        {0, "thread-frames", OPTION_ON, &run.thread_frames, NULL,
            .help = "make the thread's name the root of every stack",
            .environment = "MALLOSCOPE_THREAD_FRAMES"},
        {0, "python-objects", OPTION_ON, &run.python_objects, NULL,
            .help = "see every object of a Python program, not only the large ones",
            .environment = "MALLOSCOPE_PYTHON_OBJECTS"},
        {0, "max-size", OPTION_SIZE, &run.size_max, "N",
            .help = "let the recording grow up to N bytes, at least 2M, with --exact\n16M "
                    "(default " DEFAULT_SIZE_SAMPLED_TEXT
                    ", in proportion more with a finer --rate,\nup to " DEFAULT_SIZE_MAX_TEXT
                    ", which is the default with --exact)",
            .environment = "MALLOSCOPE_MAX_SIZE"},
        {0, "no-follow", OPTION_OFF, &run.follow, NULL,
            .help = "do not record programs that the program starts or becomes",
            .environment = "MALLOSCOPE_FOLLOW"},
        {0, "keep", OPTION_COUNT, &run.keep, "N",
            .help = "of the programs that it starts, keep only the N recordings with\nthe highest peaks"},
        {0, "merge", OPTION_ON, &run.merge, NULL,
            .help = "at the end, pack all recordings, with names, into one archive,\nand remove them"},
        {0, "dump", OPTION_FILE, &run.dumps.pattern, "FILE",
            .help = "have the program write dumps of its recording, by this name\n"
                    "(default " DEFAULT_DUMP_PATTERN "); at exit, unless told otherwise",
            .environment = "MALLOSCOPE_DUMP"},
        {0, "dump-at", OPTION_TEXT, &run.dumps.when, "LIST",
            .help = "when: exit, every so many bytes allocated (100M), or every so\n"
                    "often while it allocates (10s); several with commas",
            .environment = "MALLOSCOPE_DUMP_AT"},
        {0, "dump-format", OPTION_CHOICE, &run.dumps.format, "FORM",
            .help = "recording, for malloscope, or heap: pprof's text (default auto:\n"
                    "recording if the name ends in .mscope, heap otherwise)",
            .choices = dump_options_formats, .environment = "MALLOSCOPE_DUMP_FORMAT"},
        {0, "signal", OPTION_SIGNAL, &run.dumps.signal, "NAME",
            .help = "dump whenever the program gets this signal, such as USR2",
            .environment = "MALLOSCOPE_SIGNAL"},
        {0, "leaks-fail", OPTION_SIZE_OR_NONE, &run.gates.leaks, "[=BYTES]",
            .help = "gate: fail if likely leaks (see 'malloscope leaks') are more\nthan BYTES (default 0)"},
        {0, "peak-limit", OPTION_SIZE, &run.gates.peak, "BYTES",
            .help = "gate: fail if the heap was larger than this at its peak"},
        {0, "max-allocs", OPTION_COUNT, &run.gates.allocations, "N",
            .help = "gate: fail if there were more allocations"},
        {0, "suppressions", OPTION_FILE, &run.gates.suppressions_path, "FILE",
            .help = "for --leaks-fail: " SUPPRESSIONS_HELP},
        {0, "junit", OPTION_FILE, &run.gates.junit_path, "FILE",
            .help = "write what the gates said as JUnit XML"},
        {0, "public", OPTION_ON, &run.gates.junit_is_public, NULL,
            .help = "for --junit: let others read the file, as far as the umask\nallows"},
    };
    struct command_line line = {.name = "run",
        .usage = "malloscope run [OPTION]... [--] PROGRAM [ARGUMENT]...",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_min = 1,
        .arguments_max = ARGUMENTS_ANY,
        .argument_kind = ARGUMENT_PROGRAM};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    code = check_options(&run);
    if (code) return code;
    if (gates_are_set(&run.gates) && !judge) return COMMAND_NEEDS_JUDGE;
    run.arguments = memory_allocate((line.argument_count + 1) * sizeof *run.arguments);
    memcpy(run.arguments, line.arguments, line.argument_count * sizeof *run.arguments);

    code = prepare(&run);
    uint64_t start = nanoseconds_now(CLOCK_REALTIME);
    struct launched launched;
    struct problem problem = {0};
    if (!code) set_environment(&run);
    if (!code && launch_and_wait(run.program, run.arguments, root + strlen(ROOT), &launched, &problem) < 0)
        code = message_problem(&problem);
    if (!code) code = finish(&run, &launched, start);
    if (gates_are_set(&run.gates)) judge->free(&run.gates);
    free(run.arguments);
    free(run.program);
    free(run.pattern);
    free(run.library);
    free(run.dumps.absolute);
    return code;
}
