/* The commands of `malloscope`. `malloscope NAME` is the function command_NAME in NAME.c; commands.c has the table. */
#ifndef MALLOSCOPE_CLI_COMMAND_COMMAND_H
#define MALLOSCOPE_CLI_COMMAND_COMMAND_H

#include "cli/options/options.h"
#include "cli/options/shared.h"
#include "cli/run/gates.h"

#include <stddef.h>

struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit code */
};

/* The table of all commands. It ends with an entry whose name is NULL. */
extern const struct command commands[];

int command_archive(int argc, char **argv);
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

/* `run` is in both executables. Only malloscope-commands is linked with what it takes to judge gates
 * (cli/run/gates.h), so the judge is handed over. */
#define COMMAND_NEEDS_JUDGE (-1)
/* Returns the exit code; or COMMAND_NEEDS_JUDGE, before it has done anything, if gates are set and `judge` is NULL. */
int command_run(int argc, char **argv, const struct gate_judge *judge);

/* The names of all commands, in the order of the table; ends with NULL. */
const char *const *command_names(void);
/* NULL: there is no such command. */
const struct command *command_find(const char *name);
/* Calls `reader` with the command's table. */
void command_read(const struct command *command, command_line_reader *reader, void *context);
/* Prints that there is no such command. Returns the exit code. */
int command_unknown(const char *name);

#endif
