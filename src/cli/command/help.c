#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/options/table_json.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"

#include <stdio.h>
#include <string.h>

const struct command commands[] = {
    {"run", "run a program and record its heap", command_run},
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

const char *const by_names[] = {
    "site", "function", "line", "file", "module", "thread", "heap", "type", "scope", "stack", NULL};
const char *const sort_names[] = {"live", "peak", "total", "allocs", "temp", NULL};

const struct command *command_find(const char *name) {
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0) return command;
    return NULL;
}

int command_unknown(const char *name) {
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    const char *near = nearest_spelling(name, names, COMMAND_COUNT);
    if (near)
        return message_error(PROBLEM_USAGE, "see 'malloscope help'",
            "there is no command '%s'; did you mean '%s'?", name, near);
    return message_error(PROBLEM_USAGE,
        "see 'malloscope help'; to record a program, use 'malloscope run -- PROGRAM'",
        "there is no command '%s'", name);
}

static void print_commands(void) {
    puts("usage: malloscope COMMAND [OPTION]... [ARGUMENT]...\n\n"
         "Records which code allocates a program's heap, and shows it.\n\n"
         "commands:");
    for (const struct command *command = commands; command->name; command++)
        printf("  %-11s  %s\n", command->name, command->summary);
    puts("\n'malloscope help COMMAND' tells more. 'malloscope --version' prints the version.\n\n"
         "examples:\n"
         "  malloscope run -- ./server --port 8080      record a program\n"
         "  malloscope report malloscope.server.4711.mscope\n"
         "  malloscope report 4711                      a running program, by its pid\n");
    text_print_wrapped(stdout,
        "exit codes: 0 fine, 1 failure, 2 wrong usage, 3 no such process or file, 4 no permission,\n"
        "5 not a recording or damaged, 6 a gate of 'run' failed; 'run' passes on the program's own.",
        0, terminal_of(stdout).width);
}

void command_read(const struct command *command, command_line_reader *reader, void *context) {
    options_read_help(reader, context);
    command->run(2, (char *[]){(char *)command->name, "--help", NULL});
    options_read_help(NULL, NULL);
}

static const char about[] =
    "Shows the commands, or the help of one of them, as 'malloscope COMMAND --help' does. The manual tells\n"
    "more: 'man malloscope', 'man malloscope-COMMAND'.";

static const char examples[] = "  malloscope help run\n"
                               "  malloscope help --json | jq -r '.commands[].options[].name'";

int command_help(int argc, char **argv) {
    const char *names[COMMAND_COUNT + 1] = {0};
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    bool json = false;
    struct option_rule rules[] = {
        {0, "json", OPTION_ON, &json, NULL,
            .help =
                "one JSON object: all commands, what they take, and their\noptions with kinds and choices"},
    };
    struct command_line line = {.name = "help",
        .usage = "malloscope help [--json] [COMMAND]",
        .about = about,
        .examples = examples,
        .rules = rules,
        .rule_count = sizeof rules / sizeof *rules,
        .arguments_max = 1,
        .argument_kind = ARGUMENT_CHOICE,
        .argument_choices = names};
    enum options_result parsed = options_parse(&line, argc, argv);
    if (parsed != OPTIONS_FINE) return parsed == OPTIONS_WRONG ? PROBLEM_USAGE : message_finish_output();
    const struct command *command = line.argument_count ? command_find(line.arguments[0]) : NULL;
    if (line.argument_count && !command) return command_unknown(line.arguments[0]);
    if (json)
        table_write_json(stdout, command);
    else if (command)
        return command->run(2, (char *[]){(char *)command->name, "--help", NULL});
    else
        print_commands();
    return message_finish_output();
}
