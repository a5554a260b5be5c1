#include "base/memory.h"
#include "cli/completion/completion.h"

/* What may follow the option as its value: a kind that malloscope.bash knows, or a list of choices in brackets. */
static void write_kind(FILE *out, const struct option_rule *option) {
    cleanup_text char *values = completion_values(option);
    if (!options_needs_value(option)) return;
    if (values) {
        for (char *p = values; *p; p++)
            if (*p == ' ') *p = ',';
        fprintf(out, "=[%s]", values);
    } else {
        fputs(option->kind == OPTION_FILE     ? "=file"
              : option->kind == OPTION_FOLDER ? "=folder"
                                              : "=word",
            out);
    }
}

static void write_table(const struct command_line *line, void *context) {
    static const char *const kinds[] = {
        [ARGUMENT_SOURCE] = "source", [ARGUMENT_PROCESS] = "process", [ARGUMENT_PROGRAM] = "program"};
    FILE *out = context;
    cleanup_text char *choices = completion_join(line->argument_choices);
    if (choices)
        fprintf(out, "    %s)\n        takes='%s'\n", line->name, choices);
    else
        fprintf(out, "    %s)\n        takes=%s\n", line->name, kinds[line->argument_kind]);
    fprintf(out, "        options='");
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) {
        fprintf(out, "%s--%s", i ? "\n            " : "", option->name);
        write_kind(out, option);
        if (!option->letter) continue;
        fprintf(out, " -%c", option->letter);
        write_kind(out, option);
    }
    fputs("'\n        ;;\n", out);
}

void completion_write_bash(FILE *out) {
    fputs("# Completes command lines of malloscope in bash. Made by 'malloscope completions bash'.\n\n"
          "_malloscope_commands='",
        out);
    for (const struct command *command = commands; command->name; command++)
        fprintf(out, "%s%s", command == commands ? "" : " ", command->name);
    fputs("'\n\n# Sets what a command takes, and its options.\n"
          "_malloscope_table() {\n    case $1 in\n",
        out);
    for (const struct command *command = commands; command->name; command++)
        command_read(command, write_table, out);
    fprintf(out, "    *) return 1 ;;\n    esac\n}\n\n%s", completion_rules_bash);
}
