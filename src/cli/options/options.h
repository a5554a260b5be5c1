/* Command lines. One table says which options a command has, where their values go, what --help prints about them and
 * which environment variable stands in for them. The pages of the manual and the completions of shells are made from
 * the same table. */
#ifndef MALLOSCOPE_CLI_OPTIONS_OPTIONS_H
#define MALLOSCOPE_CLI_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_ON,           /* bool: true when given */
    OPTION_OFF,          /* bool: false when given */
    OPTION_TEXT,         /* const char * */
    OPTION_FILE,         /* const char *; shells complete names of files */
    OPTION_FOLDER,       /* const char *; shells complete names of folders */
    OPTION_SIGNAL,       /* const char *: name or number of a signal */
    OPTION_COUNT,        /* uint64_t */
    OPTION_SIZE,         /* uint64_t, in bytes: 512K */
    OPTION_SIZE_OR_NONE, /* uint64_t: "--name" stores 0, "--name=512K" stores the size */
    OPTION_PERCENT,      /* double, 0 to 100 */
    OPTION_SECONDS,      /* double: 30s, 500ms, 5m, 1h, or a bare number of seconds */
    OPTION_CHOICE,       /* int: number of the choice in `choices` */
};

struct option_rule {
    char letter; /* 0 = long form only */
    const char *name;
    enum option_kind kind;
    void *target; /* where the value goes; holds the default before */
    const char *argument;
    const char *help;           /* lines separated by \n */
    const char *const *choices; /* ends with NULL */
    const char *environment;    /* variable whose value is used when the option is not given; NULL = none */
    bool *ret_given;            /* set to true if the option stands on the command line; NULL: nobody asks */
    bool given;                 /* the option stands on the command line; set by options_parse */
};

/* What those arguments of a command are that are no options. */
enum argument_kind {
    ARGUMENT_SOURCE,  /* a recording, an archive, a folder of them, or a process that is recorded */
    ARGUMENT_PROCESS, /* any process */
    ARGUMENT_PROGRAM, /* a program and its own arguments: the options end at the program */
    ARGUMENT_CHOICE,  /* one of `argument_choices` */
};

#define ARGUMENTS_ANY ((size_t)-1) /* for arguments_max: there is no limit */

struct command_line {
    const char *name;     /* of the command */
    const char *usage;    /* "malloscope report [OPTION]... FILE|PID..." */
    const char *about;    /* paragraphs for --help */
    const char *examples; /* lines for --help */
    struct option_rule *rules;
    size_t rule_count;
    size_t arguments_min, arguments_max; /* how many arguments there may be that are no options */
    enum argument_kind argument_kind;
    const char *const *argument_choices; /* ends with NULL */
    /* Set by options_parse: the arguments that are no options. */
    char **arguments;
    size_t argument_count;
};

/* For the initializer of a struct command_line: the table and the texts of the command, and that it takes one source
 * or more. */
#define OPTIONS_TABLE(table, about_text, example_lines)                                                      \
    .about = (about_text), .examples = (example_lines), .rules = (table),                                    \
    .rule_count = sizeof(table) / sizeof *(table)
#define ARGUMENTS_SOURCES .arguments_min = 1, .arguments_max = ARGUMENTS_ANY

enum options_result { OPTIONS_FINE, OPTIONS_HELP_PRINTED, OPTIONS_WRONG };

/* Parses the arguments; `argv[0]` is the command's name. Prints what is wrong, or the help. argv is changed: the
 * arguments that are no options move to its front. */
enum options_result options_parse(struct command_line *line, int argc, char **argv);

/* The beginning of every command: options_parse, and whether the command goes on. False: the help was printed, or
 * something is wrong and has been told; the command then ends with `*ret_code`. */
bool options_begin(struct command_line *line, int argc, char **argv, int *ret_code);

/* A table exists only while its command runs, because the command fills it in when it starts. To read a table, set a
 * reader and run the command with --help: options_parse then gives the table to the reader instead of printing the
 * help. NULL: help is printed again. (command_read does all of this.) */
typedef void command_line_reader(const struct command_line *line, void *context);
void options_read_help(command_line_reader *reader, void *context);

/* The options of a command by number: those of its table, then --help, which all commands have, then NULL. */
const struct option_rule *options_at(const struct command_line *line, size_t index);

/* Whether the option never takes a value. */
bool options_is_flag(const struct option_rule *rule);
/* Whether the option must have a value: false for flags, and for those whose value may be left out. */
bool options_needs_value(const struct option_rule *rule);

#endif
