#include "cli/command.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/text.h"

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
    {"help", "this list, or the help of a command", command_help},
    {0},
};

const char *const by_names[] = {
    "site", "function", "line", "file", "module", "thread", "heap", "type", "scope", "stack", NULL};
const char *const sort_names[] = {"live", "peak", "total", "allocs", "temp", NULL};

const struct command *command_find(const char *name) {
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0) return command;
    return NULL;
}

int command_unknown(const char *name) {
    const char *names[sizeof commands / sizeof *commands];
    size_t count = 0;
    for (; commands[count].name; count++) names[count] = commands[count].name;
    const char *near = nearest_spelling(name, names, count);
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
        printf("  %-8s  %s\n", command->name, command->summary);
    puts("\n'malloscope help COMMAND' tells more. 'malloscope --version' prints the version.\n\n"
         "examples:\n"
         "  malloscope run -- ./server --port 8080      record a program\n"
         "  malloscope report malloscope.server.4711.mscope\n"
         "  malloscope report 4711                      a running program, by its pid\n");
    text_print_wrapped(stdout,
        "exit codes: 0 fine, 1 failure, 2 wrong usage, 3 no such process or file, 4 no permission,\n"
        "5 not a recording or damaged; 'run' passes on the program's own.",
        0, terminal_of(stdout).width);
}

int command_help(int argc, char **argv) {
    if (argc > 1 && argv[1][0] != '-') {
        const struct command *command = command_find(argv[1]);
        if (!command) return command_unknown(argv[1]);
        if (command->run != command_help) return command->run(2, (char *[]){argv[1], "--help", NULL});
    }
    print_commands();
    return message_finish_output();
}
