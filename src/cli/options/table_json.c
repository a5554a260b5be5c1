#include "cli/options/table_json.h"
#include "format/json.h"

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
    if (line->arguments_max == (size_t)-1)
        json_string(json, NULL); /* any number */
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
    for (size_t i = 0; (option = command_line_option(line, i)); i++) write_option(json, option);
    json_array_end(json);
}

static void write_command(struct json *json, const struct command *command) {
    json_object(json);
    json_key_string(json, "name", command->name);
    json_key_string(json, "summary", command->summary);
    command_read(command, write_table, json);
    json_object_end(json);
}

void table_write_json(FILE *out, const struct command *command) {
    struct json json;
    json_start(&json, out, true);
    json_object(&json);
    json_key_string(&json, "version", MALLOSCOPE_VERSION);
    json_key(&json, "commands");
    json_array(&json);
    for (const struct command *each = commands; each->name; each++)
        if (!command || each == command) write_command(&json, each);
    json_array_end(&json);
    json_object_end(&json);
    fputc('\n', out);
}
