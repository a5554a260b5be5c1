#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/options/spelling.h"
#include "cli/run/gates.h"
#include "cli/terminal/message.h"

#include <string.h>

static int run_and_judge(int argc, char **argv) {
    return command_run(argc, argv, &gates_judge);
}

const struct command commands[] = {
    {"run", "run a program and record its heap", run_and_judge},
    {"attach", "record the heap of a running program", command_attach},
    {"report", "table of who allocated what", command_report},
    {"tree", "call tree", command_tree},
    {"flame", "page for a browser: flame graph, timeline, sites", command_flame},
    {"leaks", "what is likely a leak, with stacks and why", command_leaks},
    {"diff", "what changed between two recordings, and which changes are real", command_diff},
    {"top", "live screen of running programs", command_top},
    {"timeline", "the size of the heap over time, as a plot", command_timeline},
    {"info", "everything about a recording", command_info},
    {"stats", "totals and health, for scripts", command_stats},
    {"dump", "copy the recording of a running program", command_dump},
    {"archive", "pack a recording with its names, to be read elsewhere", command_archive},
    {"export", "write pprof, speedscope, collapsed, json, csv, html, ...", command_export},
    {"completions", "script that completes command lines in bash, zsh or fish", command_completions},
    {"help", "this list, or the help of a command", command_help},
    {0},
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands - 1)

const char *const *command_names(void) {
    static const char *names[COMMAND_COUNT + 1]; /* the last is NULL */
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    return names;
}

const struct command *command_find(const char *name) {
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0) return command;
    return NULL;
}

int command_unknown(const char *name) {
    const char *near = spelling_nearest(name, command_names(), COMMAND_COUNT);
    if (near)
        return message_error(PROBLEM_USAGE, "see 'malloscope help'",
            "there is no command '%s'; did you mean '%s'?", name, near);
    return message_error(PROBLEM_USAGE,
        "see 'malloscope help'; to record a program, use 'malloscope run -- PROGRAM'",
        "there is no command '%s'", name);
}

void command_read(const struct command *command, command_line_reader *reader, void *context) {
    options_read_help(reader, context);
    command->run(2, (char *[]){(char *)command->name, "--help", NULL});
    options_read_help(NULL, NULL);
}
