#include "cli/run/dump_options.h"
#include "base/dump_schedule.h"
#include "base/memory.h"
#include "cli/run/output_pattern.h"

#include <stdlib.h>

const char *const dump_format_choices[] = {"auto", "recording", "heap", NULL};

static bool is_given(const char *text) {
    return text && *text;
}

int dump_options_prepare(struct dump_options *wishes, struct problem *problem) {
    struct dump_schedule when;
    const char *bad;
    size_t length;
    if (is_given(wishes->when) && !dump_schedule_read(wishes->when, &when, &bad, &length))
        return problem_set(problem, PROBLEM_USAGE,
            "use exit, a size such as 100M, a time such as 500ms, 10s, 5min or 1h; or several with commas",
            "--dump-at does not know '%.*s'", (int)length, bad);
    int signal = is_given(wishes->signal) ? dump_schedule_read_signal(wishes->signal) : 1;
    if (signal == 0)
        return problem_set(problem, PROBLEM_USAGE,
            "use a name such as USR2, or a number; 'kill -l' lists them", "'%s' is no signal",
            wishes->signal);
    if (signal < 0)
        return problem_set(problem, PROBLEM_USAGE, "use USR1 or USR2",
            "the signal '%s' cannot be taken for dumps: no program can go on after it", wishes->signal);
    bool wanted = is_given(wishes->pattern) || is_given(wishes->when) || is_given(wishes->signal);
    return wanted ? dump_pattern_prepare(wishes->pattern, &wishes->absolute, problem) : 0;
}

void dump_options_set_environment(const struct dump_options *wishes) {
    if (!wishes->absolute) return;
    memory_set_variable("MALLOSCOPE_DUMP", wishes->absolute);
    memory_set_variable("MALLOSCOPE_DUMP_FORMAT", dump_format_choices[wishes->format]);
    if (is_given(wishes->when)) memory_set_variable("MALLOSCOPE_DUMP_AT", wishes->when);
    if (is_given(wishes->signal)) memory_set_variable("MALLOSCOPE_SIGNAL", wishes->signal);
}
