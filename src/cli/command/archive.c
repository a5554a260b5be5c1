#include "model/archive.h"
#include "base/memory.h"
#include "base/path.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char about[] =
    "Packs recordings and the names of all their addresses into one file that can be read anywhere: every\n"
    "command takes it in place of a recording. Symbolization is done now, so the archive can be read on\n"
    "machines without the programs, their libraries and their debug info. 'malloscope dump' gets the\n"
    "recording out again.\n\n" SOURCE_HELP;

static const char examples[] = "  malloscope archive malloscope.server.4711.mscope\n"
                               "  malloscope archive 4711 -o now.mscar            a running program\n"
                               "  malloscope report now.mscar                     there, or elsewhere";

static const char RECORDING_SUFFIX[] = ".mscope";

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The name of an archive that the user did not name:
 *     a/x.mscope    a/x.mscar     beside the recording
 *     a/folder/     a/folder.mscar
 *     4711          x.mscar       in the current folder, if the recording of process 4711 is x.mscope
 *     x.mscar       NULL: an archive of an archive needs a name */
static char *default_output(const char *source) {
    char *recording = NULL;
    struct problem problem;
    bool is_number = strspn(source, "0123456789") == strlen(source);
    if (is_number &&
        model_find_recording_of(model_find_program_of_run(atoi(source)), &recording, &problem) == 0)
        source = path_last_part(recording);
    size_t length = strlen(source);
    while (length > 1 && source[length - 1] == '/') length--;
    if (ends_with(source, RECORDING_SUFFIX)) length -= strlen(RECORDING_SUFFIX);
    bool is_archive = ends_with(source, ARCHIVE_SUFFIX);
    char *output = is_archive ? NULL : memory_format_text("%.*s%s", (int)length, source, ARCHIVE_SUFFIX);
    free(recording);
    return output;
}

static void say_what_was_written(const char *output, const struct model *model, size_t names) {
    struct stat status;
    double bytes = 0;
    for (size_t i = 0; i < model->process_count; i++) bytes += (double)model->processes[i].file_bytes;
    if (stat(output, &status) != 0) return;
    message_note("wrote %s (%s): %s of %s, names of %s %s", output, units_bytes((double)status.st_size).text,
        units_counted((double)model->process_count, "recording").text, units_bytes(bytes).text,
        units_count((double)names).text, names == 1 ? "address" : "addresses");
}

struct archiving {
    const char *output;
    bool force, quiet;
    struct load_options load_options;
};

static int write_archive(const struct archiving *archiving, const struct command_line *line) {
    struct archive_writer writer;
    struct problem problem = {0};
    int r = archive_writer_start(archiving->output, archiving->force, &writer);
    if (r < 0) {
        new_file_problem(r, archiving->output, &problem);
        return message_problem(&problem);
    }
    struct loaded loaded;
    int code =
        load_into_archive(line->arguments, line->argument_count, &archiving->load_options, &writer, &loaded);
    if (code) {
        archive_writer_end(&writer, true);
        return code;
    }
    struct progress progress;
    progress_start(&progress, "packing names");
    size_t size = 0, count = 0;
    void *names = resolver_pack(loaded.resolver, &size, &count);
    if (names) archive_writer_add_names(&writer, names, size);
    free(names);
    r = archive_writer_end(&writer, !names);
    progress_end(&progress);
    if (r < 0) {
        load_free(&loaded);
        if (!names)
            return message_error(PROBLEM_FAILURE, "archive fewer recordings at a time",
                "the names do not fit into '%s': they take more than 4 GiB", archiving->output);
        new_file_problem(r, archiving->output, &problem);
        return message_problem(&problem);
    }
    if (!archiving->quiet) say_what_was_written(archiving->output, loaded.model, count);
    return load_finish(&loaded);
}

int command_archive(int argc, char **argv) {
    struct archiving archiving = {0};
    struct option_rule rules[] = {
        {'o', "output", OPTION_FILE, &archiving.output, "FILE",
            .help =
                "where to write the archive (default: beside the\nrecording, with the ending " ARCHIVE_SUFFIX
                ")"},
        {'f', "force", OPTION_ON, &archiving.force, NULL, .help = "replace FILE if it exists"},
        {'q', "quiet", OPTION_ON, &archiving.quiet, NULL, .help = "do not say what was written"},
        LOAD_RULES(archiving.load_options),
    };
    struct command_line line = {.name = "archive",
        .usage = "malloscope archive [OPTION]... FILE|PID... [-o FILE]",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    cleanup_text char *chosen = NULL;
    if (!archiving.output && line.argument_count == 1) chosen = default_output(line.arguments[0]);
    if (!archiving.output) archiving.output = chosen;
    if (!archiving.output)
        return message_error(PROBLEM_USAGE,
            "give it with -o, for instance: malloscope archive a.mscope b.mscope -o both" ARCHIVE_SUFFIX,
            "'archive' needs the name of the file to write");
    return write_archive(&archiving, &line);
}
