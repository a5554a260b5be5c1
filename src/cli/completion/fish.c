#include "base/memory.h"
#include "cli/completion/completion.h"

static void write_summary(FILE *out, const char *text) {
    fputs(" -d '", out);
    completion_quote(out, text, "\\", "\\'");
    fputs("'\n", out);
}

static void write_option(FILE *out, const struct command_line *line, const struct option_rule *option) {
    cleanup_text char *values = completion_values(option), *summary = completion_summary(option);
    fprintf(out, "complete -c malloscope -n '__malloscope_is %s' -l %s", line->name, option->name);
    if (option->letter) fprintf(out, " -s %c", option->letter);
    if (values)
        fprintf(out, " -x -a '%s'", values);
    else if (option->kind == OPTION_FILE)
        fputs(" -r -F", out);
    else if (option->kind == OPTION_FOLDER)
        fputs(" -x -a '(__fish_complete_directories)'", out);
    else if (options_needs_value(option))
        fputs(" -x", out);
    write_summary(out, summary);
}

/* The options in the notation of fish's argparse, by which malloscope.fish finds the program on a line of
 * 'malloscope run'. */
static void write_grammar(FILE *out, const struct command_line *line) {
    fprintf(out, "set -g __malloscope_%s_grammar", line->name);
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) {
        const char *value = options_is_flag(option) ? "" : options_needs_value(option) ? "=" : "=?";
        if (option->letter)
            fprintf(out, " '%c/%s%s'", option->letter, option->name, value);
        else
            fprintf(out, " '%s%s'", option->name, value);
    }
    fputc('\n', out);
}

static void write_arguments(FILE *out, const struct command_line *line) {
    static const char *const functions[] = {[ARGUMENT_SOURCE] = "(__malloscope_sources)",
        [ARGUMENT_PROCESS] = "(__fish_complete_pids)",
        [ARGUMENT_PROGRAM] = "(__malloscope_program)"};
    cleanup_text char *choices = completion_join(line->argument_choices);
    fprintf(out, "complete -c malloscope -n '__malloscope_is_named %s' -a '%s'\n", line->name,
        choices ? choices : functions[line->argument_kind]);
}

static void write_table(const struct command_line *line, void *context) {
    FILE *out = context;
    if (line->argument_kind == ARGUMENT_PROGRAM) write_grammar(out, line);
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) write_option(out, line, option);
    write_arguments(out, line);
    fputc('\n', out);
}

void completion_write_fish(FILE *out) {
    fprintf(out,
        "# Completes command lines of malloscope in fish. Made by 'malloscope completions fish'.\n\n%s\n"
        "complete -c malloscope -f\n"
        "complete -c malloscope -n __malloscope_is_bare -s h -l help -d 'show the commands'\n"
        "complete -c malloscope -n __malloscope_is_bare -s V -l version -d 'print the version'\n",
        completion_rules_fish);
    for (const struct command *command = commands; command->name; command++) {
        fprintf(out, "complete -c malloscope -n __malloscope_is_bare -a %s", command->name);
        write_summary(out, command->summary);
    }
    fputc('\n', out);
    for (const struct command *command = commands; command->name; command++)
        command_read(command, write_table, out);
}
