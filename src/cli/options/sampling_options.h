/* How allocations are sampled: the options that `run` and `attach` have in common. */
#ifndef MALLOSCOPE_CLI_OPTIONS_SAMPLING_OPTIONS_H
#define MALLOSCOPE_CLI_OPTIONS_SAMPLING_OPTIONS_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define SAMPLING_DEFAULT UINT64_MAX /* neither the command line nor the environment says anything */

struct sampling_options {
    uint64_t rate;  /* sampling interval in bytes; 1 = every allocation */
    uint64_t depth; /* frames that are kept of a stack */
    bool exact;     /* --exact was given; after the check: the rate is 1 */
    bool rate_given;
};

#define SAMPLING_OPTIONS_NONE                                                                                \
    { .rate = SAMPLING_DEFAULT, .depth = SAMPLING_DEFAULT }

#define SAMPLING_RATE_RULES(options)                                                                         \
    {'r', "rate", OPTION_SIZE, &(options).rate, "N", .ret_given = &(options).rate_given,                     \
        .help = "sampling interval: take one sample every N bytes on average\n(default " DEFAULT_RATE_TEXT   \
                "); 1 records "                                                                              \
                "every allocation",                                                                          \
        .environment = "MALLOSCOPE_RATE"},                                                                   \
    {                                                                                                        \
        'e', "exact", OPTION_ON, &(options).exact, NULL, .help = "record every allocation, like --rate 1"    \
    }

#define SAMPLING_DEPTH_RULE(options)                                                                         \
    {                                                                                                        \
        0, "depth", OPTION_COUNT, &(options).depth, "N",                                                     \
            .help =                                                                                          \
                "keep N frames of a stack (default " DEFAULT_DEPTH_TEXT ", at most " DEPTH_MOST_TEXT ")",    \
            .environment = "MALLOSCOPE_DEPTH"                                                                \
    }

/* Lets --exact decide the rate, and refuses what is not possible, with a message. Returns 0 or the exit code. */
int sampling_options_check(struct sampling_options *options);

#endif
