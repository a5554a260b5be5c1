#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "format/json.h"

#include <stdio.h>
#include <string.h>

/* For people */

static void print_commands(void) {
    puts("usage: malloscope COMMAND [OPTION]... [ARGUMENT]...\n\n"
         "Records which code allocates a program's heap, and shows it.\n\n"
         "commands:");
    for (const struct command *command = commands; command->name; command++)
        printf("  %-11s  %s\n", command->name, command->summary);
    puts("\n'malloscope help COMMAND' tells more. 'malloscope --version' prints the version.\n\n"
         "examples:\n"
         "  malloscope run -- ./server --port 8080      record a program\n"
         "  malloscope report malloscope.server.4711.mscope\n"
         "  malloscope report 4711                      a running program, by its pid\n");
    text_print_wrapped(stdout,
        "exit codes: 0 fine, 1 failure, 2 wrong usage, 3 no such process or file, 4 no permission,\n"
        "5 not a recording or damaged, 6 a gate of 'run' failed; 'run' passes on the program's own.",
        0, terminal_of(stdout).width);
}

/* JSON */

static const char *const option_kinds[] = {[OPTION_ON] = "flag",
    [OPTION_OFF] = "flag",
    [OPTION_TEXT] = "text",
    [OPTION_FILE] = "file",
    [OPTION_FOLDER] = "folder",
    [OPTION_SIGNAL] = "signal",
    [OPTION_COUNT] = "count",
    [OPTION_SIZE] = "size",
    [OPTION_SIZE_OR_NONE] = "size or none",
    [OPTION_PERCENT] = "percent",
    [OPTION_SECONDS] = "time",
    [OPTION_CHOICE] = "choice"};

static const char *const argument_kinds[] = {[ARGUMENT_SOURCE] = "source",
    [ARGUMENT_PROCESS] = "process",
    [ARGUMENT_PROGRAM] = "program",
    [ARGUMENT_CHOICE] = "choice"};

static void write_choices(struct json *json, const char *const *choices) {
    if (!choices) return;
    json_key(json, "choices");
    json_array(json);
    for (; *choices; choices++) json_string(json, *choices);
    json_array_end(json);
}

static void write_option(struct json *json, const struct option_rule *option) {
    char letter[] = {option->letter, '\0'};
    json_object(json);
    json_key_string(json, "letter", *letter ? letter : NULL);
    json_key_string(json, "name", option->name);
    json_key_string(json, "kind", option_kinds[option->kind]);
    json_key_string(json, "argument", option->argument);
    write_choices(json, option->choices);
    json_key_string(json, "help", option->help);
    json_key_string(json, "environment", option->environment);
    json_object_end(json);
}

static void write_arguments(struct json *json, const struct command_line *line) {
    json_object(json);
    json_key_string(json, "kind", argument_kinds[line->argument_kind]);
    json_key_integer(json, "least", (int64_t)line->arguments_min);
    json_key(json, "most");
    if (line->arguments_max == ARGUMENTS_ANY)
        json_string(json, NULL); /* there is no limit */
    else
        json_integer(json, (int64_t)line->arguments_max);
    write_choices(json, line->argument_choices);
    json_object_end(json);
}

static void write_table(const struct command_line *line, void *context) {
    struct json *json = context;
    json_key_string(json, "usage", line->usage);
    json_key_string(json, "about", line->about);
    json_key_string(json, "examples", line->examples);
    json_key(json, "arguments");
    write_arguments(json, line);
    json_key(json, "options");
    json_array(json);
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) write_option(json, option);
    json_array_end(json);
}

static void write_command(struct json *json, const struct command *command) {
    json_object(json);
    json_key_string(json, "name", command->name);
    json_key_string(json, "summary", command->summary);
    command_read(command, write_table, json);
    json_object_end(json);
}

static void print_json(const struct command *command) {
    struct json json;
    json_start(&json, stdout, true);
    json_object(&json);
    json_key_string(&json, "version", MALLOSCOPE_VERSION);
    json_key(&json, "commands");
    json_array(&json);
    for (const struct command *each = commands; each->name; each++)
        if (!command || each == command) write_command(&json, each);
    json_array_end(&json);
    json_object_end(&json);
    putchar('\n');
}

/* The command */

static const char about[] =
    "Shows the commands, or the help of one of them, as 'malloscope COMMAND --help' does. The manual\n"
    "tells more: 'man malloscope', 'man malloscope-COMMAND'.";

static const char examples[] = "  malloscope help run\n"
                               "  malloscope help --json | jq -r '.commands[].options[].name'";

int command_help(int argc, char **argv) {
    bool json = false;
    struct option_rule rules[] = {
        {0, "json", OPTION_ON, &json, NULL,
            .help =
                "one JSON object: all commands, what they take, and their\noptions with kinds and choices"},
    };
    struct command_line line = {.name = "help",
        .usage = "malloscope help [--json] [COMMAND]",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_max = 1,
        .argument_kind = ARGUMENT_CHOICE,
        .argument_choices = command_names()};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    const struct command *command = line.argument_count ? command_find(line.arguments[0]) : NULL;
    if (line.argument_count && !command) return command_unknown(line.arguments[0]);
    if (json)
        print_json(command);
    else if (command)
        return command->run(2, (char *[]){(char *)command->name, "--help", NULL});
    else
        print_commands();
    return message_finish_output();
}
