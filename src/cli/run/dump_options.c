#include "cli/run/dump_options.h"
#include "base/dump_schedule.h"
#include "base/memory.h"
#include "cli/run/output_pattern.h"

#include <stdlib.h>

const char *const dump_options_formats[] = {"auto", "recording", "heap", NULL};

static bool is_given(const char *text) {
    return text && *text;
}

int dump_options_prepare(struct dump_options *options, struct problem *problem) {
    struct dump_schedule when;
    const char *bad;
    size_t length;
    if (is_given(options->when) && !dump_schedule_read(options->when, &when, &bad, &length))
        return problem_set(problem, PROBLEM_USAGE,
            "use exit, a size such as 100M, a time such as 500ms, 10s, 5min or 1h; or several with commas",
            "--dump-at does not know '%.*s'", (int)length, bad);
    int signal = is_given(options->signal) ? dump_schedule_read_signal(options->signal) : 1;
    if (signal == 0)
        return problem_set(problem, PROBLEM_USAGE,
            "use a name such as USR2, or a number; 'kill -l' lists them", "'%s' is no signal",
            options->signal);
    if (signal < 0)
        return problem_set(problem, PROBLEM_USAGE, "use USR1 or USR2",
            "the signal '%s' cannot be taken for dumps: no program can go on after it", options->signal);
    bool wanted = is_given(options->pattern) || is_given(options->when) || is_given(options->signal);
    return wanted ? output_pattern_prepare_dumps(options->pattern, &options->absolute, problem) : 0;
}

void dump_options_set_environment(const struct dump_options *options) {
    if (!options->absolute) return;
    memory_set_variable("MALLOSCOPE_DUMP", options->absolute);
    memory_set_variable("MALLOSCOPE_DUMP_FORMAT", dump_options_formats[options->format]);
    if (is_given(options->when)) memory_set_variable("MALLOSCOPE_DUMP_AT", options->when);
    if (is_given(options->signal)) memory_set_variable("MALLOSCOPE_SIGNAL", options->signal);
}
