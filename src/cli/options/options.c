#include "cli/options/options.h"
#include "base/memory.h"
#include "cli/options/spelling.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who gets the table when help is asked for. Without a reader the help is printed. */
static struct {
    command_line_reader *reader;
    void *context;
} help;

bool options_is_flag(const struct option_rule *rule) {
    return rule->kind == OPTION_ON || rule->kind == OPTION_OFF;
}

bool options_needs_value(const struct option_rule *rule) {
    return !options_is_flag(rule) && rule->kind != OPTION_SIZE_OR_NONE;
}

void options_read_help(command_line_reader *reader, void *context) {
    help.reader = reader;
    help.context = context;
}

const struct option_rule *options_at(const struct command_line *line, size_t index) {
    static const struct option_rule help_rule = {
        'h', "help", OPTION_ON, NULL, NULL, .help = "show this help"};
    if (index < line->rule_count) return &line->rules[index];
    return index == line->rule_count ? &help_rule : NULL;
}

static enum options_result wrong(const struct command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum options_result wrong(const struct command_line *line, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    cleanup_text char *remedy = memory_format_text("see 'malloscope %s --help'", line->name);
    message_error(PROBLEM_USAGE, remedy, "%s", what);
    return OPTIONS_WRONG;
}

/* Help */

static char *list_choices(const struct option_rule *rule) {
    char *list = memory_copy_text("");
    for (size_t i = 0; rule->choices[i]; i++) {
        char *longer = memory_format_text("%s%s%s", list, i ? ", " : "", rule->choices[i]);
        free(list);
        list = longer;
    }
    return list;
}

static void print_rule(const struct option_rule *rule, size_t width) {
    enum { COLUMN = 26 };
    char form[64];
    int used = rule->letter ? snprintf(form, sizeof form, "  -%c, --%s", rule->letter, rule->name)
                            : snprintf(form, sizeof form, "      --%s", rule->name);
    const char *between = options_needs_value(rule) ? " " : "";
    if (rule->argument)
        used += snprintf(form + used, sizeof form - (size_t)used, "%s%s", between, rule->argument);
    printf("%s%*s", form, used < COLUMN - 1 ? COLUMN - used : 0, "");
    if (used >= COLUMN - 1) printf("\n%*s", COLUMN, "");
    text_print_wrapped(stdout, rule->help, COLUMN, width);
    if (rule->choices) {
        cleanup_text char *list = list_choices(rule), *text = memory_format_text("one of %s", list);
        printf("%*s", COLUMN, "");
        text_print_wrapped(stdout, text, COLUMN, width);
    }
}

static void print_help(const struct command_line *line) {
    size_t width = terminal_of(stdout).width;
    printf("usage: %s\n\n", line->usage);
    text_print_wrapped(stdout, line->about, 0, width);
    puts("\noptions:");
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) print_rule(option, width);
    bool any = false;
    for (size_t i = 0; i < line->rule_count; i++) {
        const struct option_rule *rule = &line->rules[i];
        if (!rule->environment) continue;
        if (!any) printf("\nenvironment, used where the option is not given:\n");
        any = true;
        printf("  %-22s  --%s%s\n", rule->environment, rule->name, rule->kind == OPTION_OFF ? " (if 0)" : "");
    }
    if (line->examples) printf("\nexamples:\n%s\n", line->examples);
}

static enum options_result give_help(const struct command_line *line) {
    if (help.reader)
        help.reader(line, help.context);
    else
        print_help(line);
    return OPTIONS_HELP_PRINTED;
}

/* Values */

/* Puts the value where the rule says. Returns NULL, or which kind of value was expected. */
static const char *store(struct option_rule *rule, const char *value) {
    switch (rule->kind) {
    case OPTION_ON:
        *(bool *)rule->target = true;
        return NULL;
    case OPTION_OFF:
        *(bool *)rule->target = false;
        return NULL;
    case OPTION_TEXT:
    case OPTION_FILE:
    case OPTION_FOLDER:
    case OPTION_SIGNAL:
        *(const char **)rule->target = value;
        return NULL;
    case OPTION_COUNT:
        return units_parse_count(value, rule->target) ? NULL : "a whole number";
    case OPTION_SIZE:
        return units_parse_size(value, rule->target) ? NULL : "a size such as 4096, 512K or 1M";
    case OPTION_SIZE_OR_NONE:
        *(uint64_t *)rule->target = 0;
        return !value || units_parse_size(value, rule->target) ? NULL : "a size such as 4096, 512K or 1M";
    case OPTION_PERCENT: {
        char *end;
        errno = 0;
        double percent = strtod(value, &end);
        if (*end == '%') end++;
        if (errno || end == value || *end || !(percent >= 0 && percent <= 100))
            return "a percentage from 0 to 100";
        *(double *)rule->target = percent;
        return NULL;
    }
    case OPTION_SECONDS:
        return units_parse_seconds(value, rule->target) ? NULL : "a time such as 30s, 500ms or 5m";
    case OPTION_CHOICE:
        for (int i = 0; rule->choices[i]; i++)
            if (strcmp(rule->choices[i], value) == 0) {
                *(int *)rule->target = i;
                return NULL;
            }
        return "one of those below";
    }
    return NULL;
}

static enum options_result wrong_value(const struct command_line *line, const struct option_rule *rule,
    const char *shown_name, const char *value, const char *expected) {
    if (rule->kind != OPTION_CHOICE) return wrong(line, "%s needs %s, not '%s'", shown_name, expected, value);
    size_t count = 0;
    while (rule->choices[count]) count++;
    cleanup_text char *list = list_choices(rule);
    const char *near = spelling_nearest(value, rule->choices, count);
    if (near)
        return wrong(
            line, "%s cannot be '%s'; did you mean '%s'? It is one of %s", shown_name, value, near, list);
    return wrong(line, "%s cannot be '%s'; it is one of %s", shown_name, value, list);
}

static enum options_result take_environment(const struct command_line *line, struct option_rule *rule) {
    const char *value = rule->environment ? getenv(rule->environment) : NULL;
    if (rule->given || !value || !*value) return OPTIONS_FINE;
    if (options_is_flag(rule)) {
        if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
            return wrong(
                line, "the environment variable %s needs 0 or 1, not '%s'", rule->environment, value);
        *(bool *)rule->target = *value == '1';
        return OPTIONS_FINE;
    }
    const char *expected = store(rule, value);
    if (!expected) return OPTIONS_FINE;
    cleanup_text char *shown = memory_format_text("the environment variable %s", rule->environment);
    return wrong_value(line, rule, shown, value, expected);
}

/* Parsing */

static enum options_result unknown_option(const struct command_line *line, const char *name) {
    const char **names = memory_allocate((line->rule_count + 1) * sizeof *names);
    for (size_t i = 0; i < line->rule_count; i++) names[i] = line->rules[i].name;
    names[line->rule_count] = "help";
    const char *near = spelling_nearest(name, names, line->rule_count + 1);
    free(names);
    if (near) return wrong(line, "'%s' has no option '--%s'; did you mean '--%s'?", line->name, name, near);
    return wrong(line, "'%s' has no option '--%s'", line->name, name);
}

struct walk {
    struct command_line *line;
    char **argv;
    int argc, next;
};

/* `inline_value` is the value that stands in the same argument as the option ("--rate=64K", "-n20"), or NULL. */
static enum options_result take_option(
    struct walk *walk, struct option_rule *rule, const char *shown_name, const char *inline_value) {
    const char *value = inline_value;
    if (options_needs_value(rule) && !value) {
        if (walk->next >= walk->argc)
            return wrong(walk->line, "%s needs a value: %s", shown_name, rule->argument);
        value = walk->argv[walk->next++];
    }
    const char *expected = store(rule, value);
    if (expected) return wrong_value(walk->line, rule, shown_name, value, expected);
    rule->given = true;
    if (rule->ret_given) *rule->ret_given = true;
    return OPTIONS_FINE;
}

static enum options_result take_long(struct walk *walk, char *text) {
    char *equals = strchr(text, '=');
    cleanup_text char *name = memory_format_text("%.*s", (int)strcspn(text, "="), text);
    if (strcmp(name, "help") == 0) return give_help(walk->line);
    for (size_t i = 0; i < walk->line->rule_count; i++) {
        struct option_rule *rule = &walk->line->rules[i];
        if (strcmp(rule->name, name) != 0) continue;
        if (equals && options_is_flag(rule)) return wrong(walk->line, "--%s takes no value", name);
        cleanup_text char *shown = memory_format_text("--%s", name);
        return take_option(walk, rule, shown, equals ? equals + 1 : NULL);
    }
    return unknown_option(walk->line, name);
}

/* One argument of single letters: "-fq", "-n20", or "-o", whose value is the next argument. */
static enum options_result take_short(struct walk *walk, const char *letters) {
    for (; *letters; letters++) {
        if (*letters == 'h') return give_help(walk->line);
        struct option_rule *rule = NULL;
        for (size_t i = 0; i < walk->line->rule_count; i++)
            if (walk->line->rules[i].letter == *letters) rule = &walk->line->rules[i];
        if (!rule) return wrong(walk->line, "'%s' has no option '-%c'", walk->line->name, *letters);
        char shown[] = {'-', *letters, 0};
        bool rest_is_value = options_needs_value(rule) && letters[1];
        enum options_result result = take_option(walk, rule, shown, rest_is_value ? letters + 1 : NULL);
        if (result != OPTIONS_FINE || options_needs_value(rule)) return result;
    }
    return OPTIONS_FINE;
}

static enum options_result check_count(const struct command_line *line) {
    if (line->argument_count < line->arguments_min)
        return wrong(line, "'%s' needs more than that: %s", line->name, line->usage);
    if (line->argument_count > line->arguments_max)
        return wrong(line, "'%s' does not know what to do with '%s': %s", line->name,
            line->arguments[line->arguments_max], line->usage);
    return OPTIONS_FINE;
}

enum options_result options_parse(struct command_line *line, int argc, char **argv) {
    struct walk walk = {line, argv, argc, 1};
    line->arguments = argv; /* arguments move to the front of argv, over what was parsed before them */
    line->argument_count = 0;
    bool options_end = false;
    while (walk.next < argc) {
        char *text = argv[walk.next++];
        enum options_result result = OPTIONS_FINE;
        if (!options_end && strcmp(text, "--") == 0) {
            options_end = true;
        } else if (options_end || text[0] != '-' || text[1] == 0) {
            line->arguments[line->argument_count++] = text;
            if (line->argument_kind == ARGUMENT_PROGRAM) options_end = true;
        } else if (text[1] == '-') {
            result = take_long(&walk, text + 2);
        } else {
            result = take_short(&walk, text + 1);
        }
        if (result != OPTIONS_FINE) return result;
    }
    for (size_t i = 0; i < line->rule_count; i++) {
        enum options_result result = take_environment(line, &line->rules[i]);
        if (result != OPTIONS_FINE) return result;
    }
    return check_count(line);
}

bool options_begin(struct command_line *line, int argc, char **argv, int *ret_code) {
    enum options_result parsed = options_parse(line, argc, argv);
    *ret_code = parsed == OPTIONS_WRONG  ? PROBLEM_USAGE
                : parsed == OPTIONS_FINE ? 0
                                         : message_finish_output();
    return parsed == OPTIONS_FINE;
}
