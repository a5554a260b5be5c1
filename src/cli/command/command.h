/* The commands of `malloscope`, each in a file of its own. */
#ifndef MALLOSCOPE_CLI_COMMAND_COMMAND_H
#define MALLOSCOPE_CLI_COMMAND_COMMAND_H

#include "cli/options/options.h"

#include <stddef.h>

struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
};

/* Ends with an entry without a name. */
extern const struct command commands[];

int command_archive(int argc, char **argv);
int command_run(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_report(int argc, char **argv);
int command_flame(int argc, char **argv);
int command_tree(int argc, char **argv);
int command_leaks(int argc, char **argv);
int command_info(int argc, char **argv);
int command_stats(int argc, char **argv);
int command_top(int argc, char **argv);
int command_timeline(int argc, char **argv);
int command_dump(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_export(int argc, char **argv);
int command_completions(int argc, char **argv);
int command_help(int argc, char **argv);

const struct command *command_find(const char *name);
/* Gives the command's table to `reader`. */
void command_read(const struct command *command, command_line_reader *reader, void *context);
/* Prints that there is no such command. Returns the exit code. */
int command_unknown(const char *name);

/* Lists for options that several commands share, in the order of enum view_by and enum view_sort. */
extern const char *const by_names[];
extern const char *const sort_names[];

#define FILTER_HELP                                                                                          \
    "only stacks in which a function, file, module, scope, type or\nheap matches this extended regular "     \
    "expression"

#define SUPPRESSIONS_HELP                                                                                    \
    "leave out the stacks that this file names, in the form of\nLeakSanitizer: lines of leak:PATTERN"

#define SOURCE_HELP_ONE                                                                                      \
    "FILE is a recording (*.mscope) or an archive of one (*.mscar); PID is a running program that was "      \
    "started\n"                                                                                              \
    "with 'malloscope run', or attached to."

#define SOURCE_HELP                                                                                          \
    "FILE is a recording (*.mscope), an archive (*.mscar) or a folder of recordings; PID is a running "      \
    "program\n"                                                                                              \
    "that was started with 'malloscope run', or attached to. Several are added up."

#endif
