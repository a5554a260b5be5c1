#include "cli/run/gates.h"
#include "base/confidence_interval.h"
#include "base/memory.h"
#include "cli/input/load.h"
#include "cli/run/junit.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/estimate_text.h"
#include "cli/words/leak_text.h"
#include "cli/words/notes.h"
#include "cli/words/outcome.h"
#include "cli/words/row_text.h"
#include "cli/words/summary.h"
#include "view/leaks.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SITES_SHOWN 5

static int prepare(struct gates *gates, struct problem *problem) {
    int r = gates->suppressions_path
                ? suppressions_read(gates->suppressions_path, &gates->suppressions, problem)
                : 0;
    if (r < 0 || !gates->junit_path) return r;
    int fd = open(
        gates->junit_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, gates->junit_is_public ? 0666 : 0600);
    gates->junit = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (gates->junit) return 0;
    return problem_set(problem, problem_kind_of_errno(errno), "name a file that can be written",
        "cannot open '%s' for the gates' results: %s", gates->junit_path, strerror(errno));
}

static void free_all(struct gates *gates) {
    suppressions_free(&gates->suppressions);
    if (gates->junit) fclose(gates->junit);
    gates->junit = NULL;
}

/* One gate */

struct measured {
    struct estimate value;
    double seen; /* the sum of the samples themselves: there was at least this much, without any estimate */
    bool of_bytes;
    const char *noun; /* for messages: "likely leaks:" */
};

static char *amount_text(bool of_bytes, struct estimate amount) {
    return of_bytes ? estimate_text_bytes(amount) : estimate_text_count(amount);
}

/* Fails if max(value - error, seen) > limit (docs/sampling.md, "Gates"). The caller frees the message. */
static struct junit_case compare(const char *gate, const struct measured *measured, uint64_t limit) {
    /* Without any sample, value is 0 and error is value.unseen: what may be there although nothing was sampled. */
    double value = measured->value.value, error = estimate_error(measured->value);
    bool above = value > (double)limit;
    bool failed = fmax(value - error, measured->seen) > (double)limit;
    cleanup_text char *amount = amount_text(measured->of_bytes, measured->value);
    cleanup_text char *allowed = amount_text(measured->of_bytes, (struct estimate){.value = (double)limit});
    const char *verdict = failed  ? "more than"
                          : above ? "which may by chance seem more than"
                                  : "no more than";
    return (struct junit_case){.name = gate,
        .outcome = failed ? JUNIT_FAILED : JUNIT_PASSED,
        .message = memory_format_text("%s %s, %s the %s allowed%s", measured->noun, amount, verdict, allowed,
            !failed && value + error > (double)limit ? "; a smaller --rate, or --exact, can tell" : "")};
}

/* The sites responsible */

static void print_site(FILE *out, bool of_bytes, struct estimate value, const struct view_row *row) {
    struct place_text text = row_text(row, BY_SITE, false);
    cleanup_text char *amount = amount_text(of_bytes, value);
    fprintf(out, "  %s  %s%s%s\n", amount, text.name, text.place ? "  " : "", text.place ? text.place : "");
    place_text_free(&text);
}

static char *list_sites(const struct loaded *loaded, enum view_sort sort) {
    struct problem problem = {0};
    struct view_rows rows;
    if (view_rows_make(loaded->model, loaded->resolver, BY_SITE, sort, NULL, &rows, &problem) < 0)
        return memory_copy_text(problem.what);
    char *list = NULL;
    size_t size = 0;
    FILE *out = memory_stream_open(&list, &size);
    for (size_t i = 0; i < rows.count && i < SITES_SHOWN; i++) {
        const struct figures *figures = &rows.rows[i].figures;
        if (!(view_sort_value(figures, sort) > 0)) break;
        print_site(out, sort == SORT_PEAK,
            sort == SORT_PEAK ? figures->at_peak_bytes : figures->total_objects, &rows.rows[i]);
    }
    memory_stream_close(out);
    view_rows_free(&rows);
    return list;
}

/* The largest likely leaks with the reason for each, then how much was not counted and why. */
static char *list_leaks(
    const struct model *model, const struct leaks *leaks, const struct figures *uncertain) {
    struct leak_scene scene = leaks_scene_of(model);
    const struct {
        const struct figures *sum;
        const char *what;
    } others[] = {{&leaks->start_up, "from start-up"}, {&leaks->in_use, "in use"},
        {&leaks->suppressed, "suppressed"}, {uncertain, "with too few samples to tell"}};
    char *list = NULL;
    size_t size = 0, shown = 0;
    FILE *out = memory_stream_open(&list, &size);
    for (size_t i = 0; i < leaks->count && shown < SITES_SHOWN; i++) {
        const struct leak *leak = &leaks->list[i];
        if (!leaks_is_likely(leak->kind) || leak->uncertain) continue;
        cleanup_text char *why = leak_text_why(leak, &scene);
        print_site(out, true, leak->row->figures.live_bytes, leak->row);
        fprintf(out, "    %s\n", why);
        shown++;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].sum->live_bytes.value > 0)
            fprintf(out, "  not counted: %s %s\n", units_bytes(others[i].sum->live_bytes.value).text,
                others[i].what);
    memory_stream_close(out);
    return list;
}

/* How many bytes there may be although nothing of them was sampled: 3 sampling intervals (docs/sampling.md (7)), but
 * no more than the program ever allocated. */
static double unseen_bytes(const struct model *model) {
    if (model->exact) return 0;
    double likely = confidence_interval_unseen(model->rate);
    return model->totals.exact_is_complete ? fmin(likely, model->totals.exact_total_bytes) : likely;
}

/* Leaks are judged by site, since a single stack may have too few samples. */
static struct junit_case judge_leaks(struct gates *gates, const struct loaded *loaded) {
    struct problem problem = {0};
    struct leaks leaks;
    struct view_query query = {.by = BY_SITE, .sort = SORT_LIVE};
    if (leaks_find(loaded->model, loaded->resolver, &query, &gates->suppressions, &leaks, &problem) < 0)
        return (struct junit_case){"leaks-fail", JUNIT_ERROR, memory_copy_text(problem.what), NULL};
    struct figures counted, uncertain;
    figures_clear(&counted);
    figures_clear(&uncertain);
    for (size_t i = 0; i < leaks.count; i++)
        if (leaks_is_likely(leaks.list[i].kind))
            figures_add(leaks.list[i].uncertain ? &uncertain : &counted, &leaks.list[i].row->figures);
    /* Small leaks may not have been sampled at all. */
    counted.live_bytes.unseen = unseen_bytes(loaded->model);
    struct measured measured = {
        counted.live_bytes, loaded->model->exact ? 0 : counted.sampled_live_bytes, true, "likely leaks:"};
    struct junit_case judged = compare("leaks-fail", &measured, gates->leaks);
    if (judged.outcome != JUNIT_PASSED) judged.details = list_leaks(loaded->model, &leaks, &uncertain);
    leaks_free(&leaks);
    return judged;
}

static struct junit_case judge_peak(const struct gates *gates, const struct loaded *loaded) {
    const struct totals *totals = &loaded->model->totals;
    struct junit_case judged =
        compare("peak-limit", &(struct measured){totals->peak, 0, true, "peak of the heap:"}, gates->peak);
    if (judged.outcome != JUNIT_PASSED) judged.details = list_sites(loaded, SORT_PEAK);
    return judged;
}

static struct junit_case judge_allocations(const struct gates *gates, const struct loaded *loaded) {
    const struct figures *sum = &loaded->model->totals.sum;
    struct estimate allocations = sum->total_objects;
    allocations.unseen = unseen_bytes(loaded->model); /* the worst case: allocations of one byte each */
    struct measured measured = {allocations, (double)sum->samples, false, "allocations:"};
    struct junit_case judged = compare("max-allocs", &measured, gates->allocations);
    if (judged.outcome != JUNIT_PASSED) judged.details = list_sites(loaded, SORT_ALLOCS);
    return judged;
}

/* All gates */

struct judged {
    struct junit_case cases[4];
    size_t count;
};

static void add(struct judged *judged, struct junit_case one) {
    judged->cases[judged->count++] = one;
}

static struct junit_case program_case(int status) {
    if (!status) return (struct junit_case){"exit status", JUNIT_PASSED, memory_copy_text("0"), NULL};
    char *message = WIFSIGNALED(status) ? memory_format_text("killed by signal %d (%s)", WTERMSIG(status),
                                              strsignal(WTERMSIG(status)))
                                        : memory_format_text("exit status %d", WEXITSTATUS(status));
    return (struct junit_case){"exit status", JUNIT_FAILED, message, NULL};
}

static void judge_all(struct gates *gates, const struct loaded *loaded, struct judged *judged) {
    if (gates->leaks != GATE_OFF) add(judged, judge_leaks(gates, loaded));
    if (gates->peak != GATE_OFF) add(judged, judge_peak(gates, loaded));
    if (gates->allocations != GATE_OFF) add(judged, judge_allocations(gates, loaded));
}

/* A gate that could not be judged does not pass: each gets an error. */
static void add_error(const struct gates *gates, const char *message, struct judged *judged) {
    const struct {
        uint64_t limit;
        const char *name;
    } all[] = {{gates->leaks, "leaks-fail"}, {gates->peak, "peak-limit"}, {gates->allocations, "max-allocs"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].limit != GATE_OFF)
            add(judged, (struct junit_case){all[i].name, JUNIT_ERROR, memory_copy_text(message), NULL});
}

static void print_lines(const char *text) {
    size_t width = terminal_of(stderr).width;
    while (*text) {
        size_t length = strcspn(text, "\n");
        cleanup_text char *raw = memory_format_text("%.*s", (int)length, text), *line = text_clean(raw);
        text_print_wrapped(stderr, line, 0, width);
        text += length + (text[length] == '\n');
    }
}

/* Returns the exit code. Skips the first case, the exit status of the program: the program or the shell tells it. */
static int print_judged(const struct judged *judged, const struct gated_run *run) {
    bool failed = false, unjudged = false;
    for (size_t i = 1; i < judged->count; i++) {
        const struct junit_case *one = &judged->cases[i];
        if (one->outcome == JUNIT_PASSED) {
            if (!run->quiet) message_note("--%s passed: %s", one->name, one->message);
            continue;
        }
        failed |= one->outcome == JUNIT_FAILED;
        unjudged |= one->outcome == JUNIT_ERROR;
        message_error(PROBLEM_GATE, NULL, "--%s %s: %s", one->name,
            one->outcome == JUNIT_FAILED ? "failed" : "could not be judged", one->message);
        if (one->details) print_lines(one->details);
    }
    if (failed && run->recording) {
        cleanup_text char *path = outcome_path(run->recording), *word = text_shell_word(path);
        cleanup_text char *hint =
            memory_format_text("malloscope leaks %s, or malloscope report %s, tells more", word, word);
        message_hint(hint);
    }
    if (failed && run->status) message_note("the program failed by itself, so its own status is passed on");
    return failed ? PROBLEM_GATE : unjudged ? PROBLEM_FAILURE : 0;
}

static int judge_recording(struct gates *gates, const struct gated_run *run, struct judged *judged) {
    struct loaded loaded = {0};
    struct load_options options = {0};
    char *source = run->recording;
    int code = source ? load_sources(&source, 1, &options, &loaded) : PROBLEM_FAILURE;
    if (code) {
        add_error(gates, source ? "the recording cannot be read" : "the program was not recorded", judged);
        return code;
    }
    if (loaded.model->damaged)
        code = PROBLEM_DAMAGED;
    else if (notes_incomplete(loaded.model))
        message_note("the recording is not complete, so the gates may have missed something");
    judge_all(gates, &loaded, judged);
    load_free(&loaded);
    return code;
}

static int judge(struct gates *gates, const struct gated_run *run) {
    struct judged judged = {0};
    add(&judged, program_case(run->status));
    int problem = judge_recording(gates, run, &judged);
    int code = print_judged(&judged, run);
    if (code != PROBLEM_GATE && problem) code = problem;
    int r =
        gates->junit ? junit_write(gates->junit, run->program, run->seconds, judged.cases, judged.count) : 0;
    if (r < 0) {
        int failure = message_error(PROBLEM_FAILURE, "make room on the disk, or write somewhere else",
            "cannot write '%s': %s", gates->junit_path, strerror(-r));
        if (!code) code = failure;
    }
    for (size_t i = 0; i < judged.count; i++) {
        free(judged.cases[i].message);
        free(judged.cases[i].details);
    }
    return code;
}

const struct gate_judge gates_judge = {prepare, judge, free_all};
