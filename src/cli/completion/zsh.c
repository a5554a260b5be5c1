#include "base/memory.h"
#include "cli/completion/completion.h"

static void write_value(FILE *out, const struct option_rule *option) {
    if (options_is_flag(option)) return;
    cleanup_text char *values = completion_values(option);
    bool needed = options_needs_value(option);
    fprintf(out, "%s%s:", needed ? ":" : "::", needed ? option->argument : "BYTES");
    if (values)
        fprintf(out, "(%s)", values);
    else
        fputs(option->kind == OPTION_FILE     ? "_files"
              : option->kind == OPTION_FOLDER ? "_directories"
                                              : " ",
            out);
}

static void write_option(FILE *out, const struct option_rule *option) {
    cleanup_text char *summary = completion_summary(option);
    const char *after_name = options_is_flag(option) ? "" : options_needs_value(option) ? "=" : "=-";
    if (option->letter)
        fprintf(out, "        '(-%c --%s)'{-%c%s,--%s%s}'[", option->letter, option->name, option->letter,
            *after_name ? "+" : "", option->name, after_name);
    else
        fprintf(out, "        '--%s%s[", option->name, after_name);
    completion_quote(out, summary, "[]\\", "'\\''");
    fputc(']', out);
    write_value(out, option);
    fputs("' \\\n", out);
}

static void write_arguments(FILE *out, const struct command_line *line) {
    cleanup_text char *choices = completion_join(line->argument_choices);
    const char *action = line->argument_kind == ARGUMENT_SOURCE ? "recording or process:_malloscope_sources"
                                                                : "process:_malloscope_processes";
    if (choices)
        fprintf(out, "        '1:%s:(%s)'\n", line->name, choices);
    else if (line->argument_kind == ARGUMENT_PROGRAM)
        fprintf(out, "        '(-)1:program:_malloscope_programs' \\\n        '*::argument:_normal'\n");
    else if (line->arguments_max == ARGUMENTS_ANY)
        fprintf(out, "        '*:%s'\n", action);
    else
        for (size_t i = 1; i <= line->arguments_max; i++)
            fprintf(out, "        '%zu:%s'%s\n", i, action, i < line->arguments_max ? " \\" : "");
}

static void write_table(const struct command_line *line, void *context) {
    FILE *out = context;
    fprintf(out, "_malloscope_%s() {\n    _arguments -s -S : \\\n", line->name);
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) write_option(out, option);
    write_arguments(out, line);
    fputs("}\n\n", out);
}

void completion_write_zsh(FILE *out) {
    fputs("#compdef malloscope\n"
          "# Completes command lines of malloscope in zsh. Made by 'malloscope completions zsh'.\n\n"
          "_malloscope_commands() {\n    local -a commands=(\n",
        out);
    for (const struct command *command = commands; command->name; command++) {
        fprintf(out, "        '%s:", command->name);
        completion_quote(out, command->summary, ":\\", "'\\''");
        fputs("'\n", out);
    }
    fputs("    )\n    _describe -t commands command commands\n}\n\n", out);
    for (const struct command *command = commands; command->name; command++)
        command_read(command, write_table, out);
    fputs(completion_rules_zsh, out);
}
