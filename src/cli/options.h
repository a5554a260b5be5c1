/* Command lines: one table says which options a command has, where their values go, what --help prints about
 * them and which environment variable stands in for them. */
#ifndef MALLOSCOPE_CLI_OPTIONS_H
#define MALLOSCOPE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_ON,           /* bool: true when given */
    OPTION_OFF,          /* bool: false when given */
    OPTION_TEXT,         /* const char * */
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
    bool given;                 /* on the command line */
};

struct command_line {
    const char *name;     /* of the command */
    const char *usage;    /* "malloscope report [OPTION]... FILE|PID..." */
    const char *about;    /* paragraphs for --help */
    const char *examples; /* lines for --help */
    struct option_rule *rules;
    size_t rule_count;
    size_t arguments_min, arguments_max; /* of those that are no options */
    bool ends_at_argument; /* the first argument that is no option ends them: the rest is another command */
    /* What was found. */
    char **arguments;
    size_t argument_count;
};

enum options_result { OPTIONS_FINE, OPTIONS_HELP_PRINTED, OPTIONS_WRONG };

/* `argv[0]` is the command's name. Prints what is wrong, or the help. The arguments are gathered in argv
 * itself. */
enum options_result options_parse(struct command_line *line, int argc, char **argv);

/* The candidate nearest to `text` in spelling, or NULL if none is near. */
const char *nearest_spelling(const char *text, const char *const *candidates, size_t count);

#endif
