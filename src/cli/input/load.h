/* What a command works on: the model of a recording and its symbols. */
#ifndef MALLOSCOPE_CLI_INPUT_LOAD_H
#define MALLOSCOPE_CLI_INPUT_LOAD_H

#include "model/archive.h"
#include "model/model.h"
#include "symbol/symbol.h"

struct loaded {
    struct model *model;
    struct resolver *resolver; /* NULL if not asked for */
};

/* How addresses get names. */
struct load_options {
    const char *sysroot; /* folder that holds the files of the recorded machine, or NULL */
    bool no_cache;       /* neither use names found earlier, nor keep any */
    bool samples;        /* and more than names: the model is to list the live samples */
};

/* The options of a command that shows names. */
#define LOAD_RULES(options)                                                                                  \
    {0, "sysroot", OPTION_FOLDER, &(options).sysroot, "DIR",                                                 \
        .help = "look for programs, libraries and debug files below DIR\n"                                   \
                "first: those of the machine or image that was recorded"},                                   \
    {                                                                                                        \
        0, "no-cache", OPTION_ON, &(options).no_cache, NULL,                                                 \
            .help = "read all debug info anew, and keep no names in\n"                                       \
                    "~/.cache/malloscope (or below XDG_CACHE_HOME)",                                         \
            .environment = "MALLOSCOPE_NO_CACHE"                                                             \
    }

/* Each of the sources is a recording, an archive, a folder of recordings or a PID; they are added up. Unless
 * `options` is NULL all addresses are resolved, behind a progress bar. Prints what goes wrong. Returns 0 or
 * the exit code.
 */
int load_sources(char **sources, size_t count, const struct load_options *options, struct loaded *ret_loaded);
/* The same, and each recording is written into the archive as it is read. */
int load_into_archive(char **sources, size_t count, const struct load_options *options,
    struct archive_writer *archive, struct loaded *ret_loaded);
/* The same of one source, with what was allocated up to `seconds` after its start and is still live; < 0:
 * all.
 */
int load_moment(char *source, double seconds, const struct load_options *options, struct loaded *ret_loaded);
void load_free(struct loaded *loaded);

/* The parts of that, for who has read a model otherwise: whether the options can be met, with a message if
 * not, as an exit code; and names for all of the model's addresses, without a word. */
int load_check_options(const struct load_options *options);
int load_names(struct loaded *loaded, const struct load_options *options, symbol_progress progress,
    void *context, struct problem *problem);

/* The end of a command that has shown what it could: frees, and returns the exit code. That of a damaged
 * recording is PROBLEM_DAMAGED even though all that can be read was shown. */
int load_finish(struct loaded *loaded);

#endif
