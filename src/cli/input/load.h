/* Reading the recordings that the user named: the model of the recordings, and the names of its code addresses. */
#ifndef MALLOSCOPE_CLI_INPUT_LOAD_H
#define MALLOSCOPE_CLI_INPUT_LOAD_H

#include "cli/options/options.h"
#include "model/archive.h"
#include "model/model.h"
#include "symbol/symbol.h"

struct loaded {
    struct model *model;
    struct resolver *resolver; /* NULL: the command did not ask for names */
};

/* What the user asked for about symbolization, and what the command needs of the model. */
struct load_options {
    const char *sysroot; /* folder that holds the files of the recorded machine, or NULL */
    bool no_cache;       /* neither read nor write the cache of names */
    bool samples;        /* the model is to list every live sample */
};

/* The options that every command has which shows names of code. */
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

/* Loads the sources, each of which is a recording, an archive, a folder of recordings or a PID, and adds them up.
 * Symbolizes all addresses, with a progress bar, unless `options` is NULL. Prints what goes wrong. Returns 0 or the
 * exit code. The caller frees `*ret_loaded` with load_free or load_finish if 0 was returned. */
int load_sources(char **sources, size_t count, const struct load_options *options, struct loaded *ret_loaded);
/* The beginning of a command that has nothing to check between its options and loading: options_begin, then
 * load_sources of its arguments. False: the command ends with `*ret_code`. */
bool load_begin(struct command_line *line, int argc, char **argv, const struct load_options *options,
    struct loaded *ret_loaded, int *ret_code);
/* As load_sources; besides, writes each recording into the archive as it is read. */
int load_into_archive(char **sources, size_t count, const struct load_options *options,
    struct archive_writer *archive, struct loaded *ret_loaded);
/* As load_sources for one source. The model holds only what was allocated in the first `seconds` after the start and
 * is still live; `seconds` < 0: everything. */
int load_moment(char *source, double seconds, const struct load_options *options, struct loaded *ret_loaded);
void load_free(struct loaded *loaded);

/* Two parts of load_sources, for `top`, which reads models by itself. load_check_options says whether the options can
 * be met: it returns 0, or prints why not and returns the exit code. load_names symbolizes all addresses of
 * `loaded->model` and prints nothing. */
int load_check_options(const struct load_options *options);
void load_names(
    struct loaded *loaded, const struct load_options *options, symbol_progress progress, void *context);

/* The end of a command that has shown what it could: frees `loaded` and returns the exit code. For a damaged
 * recording that is PROBLEM_DAMAGED, although everything that could be read was shown. */
int load_finish(struct loaded *loaded);

#endif
