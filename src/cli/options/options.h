/* Command lines: one table says which options a command has, where their values go, what --help prints about
 * them and which environment variable stands in for them. The same table makes the pages of the manual and
 * what shells complete. */
#ifndef MALLOSCOPE_CLI_OPTIONS_OPTIONS_H
#define MALLOSCOPE_CLI_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_ON,   /* bool: true when given */
    OPTION_OFF,  /* bool: false when given */
    OPTION_TEXT, /* const char * */
    OPTION_FILE, /* const char *, as are the next two */
    OPTION_FOLDER,
    OPTION_SIGNAL,       /* name or number */
    OPTION_COUNT,        /* uint64_t */
    OPTION_SIZE,         /* uint64_t, in bytes: 512K */
    OPTION_SIZE_OR_NONE, /* the same, 0 when no value is given; a value stands behind "=" only */
    OPTION_PERCENT,      /* double, 0 to 100 */
    OPTION_SECONDS,      /* double: 30s, 500ms, 5m, 1h, or a bare number of seconds */
    OPTION_CHOICE,       /* int: number of the choice in `choices` */
};

struct option_rule {
    char letter; /* 0 = long form only */
    const char *name;
    enum option_kind kind;
    void *target; /* holds the default, and then what was given */
    const char *argument;
    const char *help;           /* lines separated by \n */
    const char *const *choices; /* ends with NULL */
    const char *environment;    /* used when the option is not given; NULL = none. Flags: 0 or 1 */
    bool *ret_given;            /* set to true if the option stands on the command line; NULL: nobody asks */
    bool given;                 /* the same, for options_parse itself */
};

/* What a command's arguments are that are no options. */
enum argument_kind {
    ARGUMENT_SOURCE,  /* a recording, an archive, a folder of them, or a process that is recorded */
    ARGUMENT_PROCESS, /* any process */
    ARGUMENT_PROGRAM, /* a program, and then its own arguments, which end the options */
    ARGUMENT_CHOICE,  /* of `argument_choices` */
};

#define ARGUMENTS_ANY ((size_t)-1) /* any number of them */

struct command_line {
    const char *name;     /* of the command */
    const char *usage;    /* "malloscope report [OPTION]... FILE|PID..." */
    const char *about;    /* paragraphs for --help */
    const char *examples; /* lines for --help */
    struct option_rule *rules;
    size_t rule_count;
    size_t arguments_min, arguments_max; /* of those that are no options */
    enum argument_kind argument_kind;
    const char *const *argument_choices; /* ends with NULL */
    /* What was found. */
    char **arguments;
    size_t argument_count;
};

/* A command's table in the initializer of its struct command_line. */
#define OPTIONS_TABLE(table) .rules = (table), .rule_count = sizeof(table) / sizeof *(table)

enum options_result { OPTIONS_FINE, OPTIONS_HELP_PRINTED, OPTIONS_WRONG };

/* `argv[0]` is the command's name. Prints what is wrong, or the help. The arguments are gathered in argv
 * itself. */
enum options_result options_parse(struct command_line *line, int argc, char **argv);

/* The beginning of every command: options_parse, and whether the command goes on. False: the help was printed, or
 * something is wrong and has been told; the command then ends with `*ret_code`. */
bool options_begin(struct command_line *line, int argc, char **argv, int *ret_code);

/* Commands fill their tables in as they start. To read one, have the command asked for its help, which goes
 * to `reader` then in place of being printed; NULL: as usual. */
typedef void command_line_reader(const struct command_line *line, void *context);
void options_read_help(command_line_reader *reader, void *context);

/* Option `index` of a command: of its table, and behind that --help, which all have. NULL behind the last. */
const struct option_rule *options_at(const struct command_line *line, size_t index);

bool options_is_flag(const struct option_rule *rule);
/* Not if there is no value, nor if it may be left out. */
bool options_needs_value(const struct option_rule *rule);

#endif
