#include "cli/options/sampling_options.h"
#include "base/limits.h"
#include "cli/terminal/message.h"

int sampling_options_check(struct sampling_options *options) {
    if (options->exact && options->rate_given && options->rate != 1)
        return message_error(
            PROBLEM_USAGE, "--exact is the same as --rate 1", "--exact and --rate exclude each other");
    if (options->exact) options->rate = 1;
    options->exact = options->rate == 1;
    if (options->rate == 0)
        return message_error(PROBLEM_USAGE, "use --rate 1, or --exact, to record every allocation",
            "a rate of 0 is not possible");
    if (options->depth != SAMPLING_DEFAULT && (options->depth < DEPTH_LEAST || options->depth > DEPTH_MOST))
        return message_error(PROBLEM_USAGE, "choose a number from 2 to " DEPTH_MOST_TEXT,
            "a stack of %llu frames cannot be kept", (unsigned long long)options->depth);
    return 0;
}
