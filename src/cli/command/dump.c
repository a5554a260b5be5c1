#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"
#include "model/model.h"

#include <sys/stat.h>

static const char about[] =
    "Copies the recording of a running program, or another recording, as it is at this moment:\n"
    "consistent, and no larger than what is used of it. The program is neither stopped nor disturbed.";

static const char examples[] = "  malloscope dump 4711 -o before.mscope\n"
                               "  malloscope dump malloscope.server.4711.mscope -o small.mscope";

int command_dump(int argc, char **argv) {
    const char *output = NULL;
    bool force = false, quiet = false;
    struct option_rule rules[] = {
        {'o', "output", OPTION_FILE, &output, "FILE", .help = "where to write the copy (needed)"},
        {'f', "force", OPTION_ON, &force, NULL, .help = "replace FILE if it exists"},
        {'q', "quiet", OPTION_ON, &quiet, NULL, .help = "do not say what was written"},
    };
    struct command_line line = {.name = "dump",
        .usage = "malloscope dump [OPTION]... FILE|PID -o FILE",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_min = 1,
        .arguments_max = 1};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    if (!output)
        return message_error(PROBLEM_USAGE,
            "give it with -o, for instance: malloscope dump 4711 -o now.mscope",
            "'dump' needs the name of the file to write");
    struct problem problem = {0};
    struct progress progress;
    progress_start(&progress, "copying the recording");
    int r = model_copy(line.arguments[0], output, force, &problem);
    progress_end(&progress);
    if (r < 0) return message_problem(&problem);
    struct stat status;
    if (!quiet && stat(output, &status) == 0)
        message_note("wrote %s (%s)", output, units_bytes((double)status.st_size).text);
    return 0;
}
