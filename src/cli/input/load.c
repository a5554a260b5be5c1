#include "cli/input/load.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "symbol/symbol_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char READING[] = "reading the recording";

/* Prints each line of `text`, which is one sentence, as a warning. NULL prints nothing. */
static void print_warnings(const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        if (length) message_note("warning: %.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static int check_sysroot(const char *folder) {
    struct stat status;
    if (stat(folder, &status) < 0)
        return message_error(problem_kind_of_errno(errno),
            "name the folder that stands for / of that machine", "--sysroot '%s': %s", folder,
            strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return message_error(PROBLEM_USAGE,
            "name the folder that stands for / of that machine; unpack an image first",
            "--sysroot '%s' is not a folder", folder);
    /* libdwfl takes a list of folders to search for debug files, and a colon separates them. */
    if (strchr(folder, ':'))
        return message_error(PROBLEM_USAGE, "make a symbolic link to it, and name that",
            "--sysroot '%s' cannot hold a colon", folder);
    return 0;
}

void load_names(
    struct loaded *loaded, const struct load_options *options, symbol_progress progress, void *context) {
    loaded->resolver = resolver_new(loaded->model);
    if (options->sysroot) resolver_set_sysroot(loaded->resolver, options->sysroot);
    char *cache = options->no_cache ? NULL : symbol_cache_folder();
    if (cache) resolver_use_cache(loaded->resolver, cache);
    free(cache);
    resolver_resolve_all(loaded->resolver, progress, context);
}

static void load_symbols(struct loaded *loaded, const struct load_options *options) {
    struct progress progress;
    progress_start(&progress, "reading symbols");
    load_names(loaded, options, progress_step, &progress);
    progress_end(&progress);
    print_warnings(resolver_warning(loaded->resolver));
    if (resolver_lacks_files(loaded->resolver) && !options->sysroot)
        message_hint("if the recording comes from another machine or a container, name the folder that holds "
                     "its files with --sysroot DIR");
}

/* The second half of loading: warns if the model is damaged, and symbolizes it unless `options` is NULL. */
static void complete(const struct load_options *options, struct loaded *loaded) {
    print_warnings(loaded->model->warning);
    if (loaded->model->damaged)
        message_hint("what can be read is shown; get a whole copy of the file, or record again");
    if (options) load_symbols(loaded, options);
}

int load_check_options(const struct load_options *options) {
    return options && options->sysroot ? check_sysroot(options->sysroot) : 0;
}

/* Reads the recordings, prints what goes wrong, and looks names up if `options` is not NULL. */
static int load_model(const struct model_load_options *model_options, const struct load_options *options,
    struct loaded *ret_loaded) {
    struct problem problem = {0};
    int code = load_check_options(options);
    if (code) return code;
    *ret_loaded = (struct loaded){0};
    struct progress progress;
    progress_start(&progress, READING);
    int r = model_load(model_options, &ret_loaded->model, &problem);
    progress_end(&progress);
    if (r < 0) return message_problem(&problem);
    complete(options, ret_loaded);
    return 0;
}

int load_into_archive(char **sources, size_t count, const struct load_options *options,
    struct archive_writer *archive, struct loaded *ret_loaded) {
    struct model_load_options model_options = {.sources = (const char *const *)sources,
        .source_count = count,
        .with_samples = options && options->samples,
        .archive = archive};
    return load_model(&model_options, options, ret_loaded);
}

int load_moment(char *source, double seconds, const struct load_options *options, struct loaded *ret_loaded) {
    const char *const sources[] = {source};
    struct model_load_options model_options = {
        .sources = sources, .source_count = 1, .live_born_until = seconds < 0 ? NULL : &seconds};
    return load_model(&model_options, options, ret_loaded);
}

int load_sources(
    char **sources, size_t count, const struct load_options *options, struct loaded *ret_loaded) {
    return load_into_archive(sources, count, options, NULL, ret_loaded);
}

bool load_begin(struct command_line *line, int argc, char **argv, const struct load_options *options,
    struct loaded *ret_loaded, int *ret_code) {
    if (!options_begin(line, argc, argv, ret_code)) return false;
    *ret_code = load_sources(line->arguments, line->argument_count, options, ret_loaded);
    return *ret_code == 0;
}

void load_free(struct loaded *loaded) {
    if (loaded->resolver) resolver_free(loaded->resolver);
    if (loaded->model) model_free(loaded->model);
    *loaded = (struct loaded){0};
}

int load_finish(struct loaded *loaded) {
    bool damaged = loaded->model->damaged;
    load_free(loaded);
    int code = message_finish_output();
    return code || !damaged ? code : PROBLEM_DAMAGED;
}
