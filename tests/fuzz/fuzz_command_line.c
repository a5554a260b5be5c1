/* Command lines: the input's parts, which zero bytes end, are arguments. The commands' own tables are used.
 *
 * Commands that only read go on to do what they were told, with a small recording "r" at hand. The others,
 * and those that are told to write a file, end after their options were understood: options_begin is replaced
 * by the linker (--wrap). Each part is also given to the readers of sizes, times, signals and names, and to
 * the recorder as an option in the environment. */
#include "fuzz.h"

#include "../unit/test_model_recording.h"
#include "base/dump_schedule.h"
#include "base/problem.h"
#include "cli/command/command.h"
#include "cli/options/options.h"
#include "cli/terminal/units.h"
#include "record/life/options.h"

#include <dirent.h>
#include <math.h>

#define ARGUMENTS_MOST 24

static char folder[] = "/tmp/fuzz_command_line.XXXXXX";
static bool is_made;

static __attribute__((destructor)) void clean_up(void) {
    if (!is_made || chdir("/") != 0) return;
    char recording[64];
    snprintf(recording, sizeof recording, "%s/r", folder);
    unlink(recording);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    is_made = mkdtemp(folder);
    REQUIRE(is_made && chdir(folder) == 0);
    struct made made = made_new(4096, RECORDING_FINISHED);
    for (uint32_t i = 1; i < 6; i++) {
        uint32_t number;
        struct stack_record *record = made_stack(&made, (uint64_t[]){i, 7}, 2, STACK_COMPLETE, &number);
        record->samples = i;
        record->alloc_bytes = 1000 * i * BYTE_ONE;
        record->alloc_objects = i * OBJECT_ONE;
        made_live(&made, i, 0x1000u * i, 1000 * i, number);
    }
    made_write(&made, "r");
    made_free(&made);
    setenv("MALLOSCOPE_NO_CACHE", "1", 1);
    return 0;
}

/* ---- commands ---- */

static bool only_reads(const struct command_line *line) {
    static const char *const names[] = {"report", "tree", "leaks", "diff", "timeline", "info", "stats"};
    /* What is written to, and regular expressions: regcomp takes any time and memory that it is asked for. */
    static const char *const not_with[] = {"output", "filter", "html", "junit", "follow", "watch"};
    bool is_reader = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) is_reader |= strcmp(names[i], line->name) == 0;
    for (size_t i = 0; i < line->rule_count; i++)
        for (size_t k = 0; k < sizeof not_with / sizeof *not_with; k++)
            if (line->rules[i].given && strcmp(line->rules[i].name, not_with[k]) == 0) is_reader = false;
    /* No process of this machine, and no folder that others fill. */
    for (size_t i = 0; i < line->argument_count; i++) {
        const char *argument = line->arguments[i];
        if (argument[0] != 'r' || (argument[1] && argument[1] != '@')) is_reader = false;
    }
    return is_reader;
}

bool __real_options_begin(struct command_line *line, int argc, char **argv, int *ret_code);
bool __wrap_options_begin(struct command_line *line, int argc, char **argv, int *ret_code);

bool __wrap_options_begin(struct command_line *line, int argc, char **argv, int *ret_code) {
    if (!__real_options_begin(line, argc, argv, ret_code)) return false;
    REQUIRE(line->argument_count >= line->arguments_min && line->argument_count <= line->arguments_max);
    REQUIRE(line->argument_count < (size_t)argc);
    for (size_t i = 0; i < line->argument_count; i++) REQUIRE(line->arguments[i]);
    for (size_t i = 0; i < line->rule_count; i++) {
        const struct option_rule *rule = &line->rules[i];
        if (rule->kind == OPTION_PERCENT && rule->given)
            REQUIRE(*(double *)rule->target >= 0 && *(double *)rule->target <= 100);
        if (rule->kind == OPTION_SECONDS && rule->given)
            REQUIRE(isfinite(*(double *)rule->target) && *(double *)rule->target > 0);
    }
    *ret_code = PROBLEM_USAGE;
    return only_reads(line);
}

static void run_command(int count, char **arguments) {
    const struct command *command = command_find(arguments[0]);
    int code = command ? command->run(count, arguments) : command_unknown(arguments[0]);
    REQUIRE(code >= 0 && code <= PROBLEM_GATE);
    fflush(stdout);
}

/* ---- readers of single values ---- */

static void read_value(const char *text) {
    uint64_t number;
    double seconds;
    if (units_parse_size(text, &number)) REQUIRE(*text >= '0' && *text <= '9');
    if (units_parse_count(text, &number)) REQUIRE(text[strspn(text, "0123456789")] == '\0');
    if (units_parse_seconds(text, &seconds)) REQUIRE(seconds > 0 && seconds <= 366 * 86400.0);
    struct dump_schedule when;
    const char *bad = NULL;
    size_t bad_length = 0;
    if (!dump_schedule_read(text, &when, &bad, &bad_length))
        REQUIRE(bad >= text && bad + bad_length <= text + strlen(text));
    REQUIRE(dump_schedule_read_signal(text) < 65);
}

static void read_as_recorder(const char *text) {
    static const char *const names[] = {"MALLOSCOPE_RATE", "MALLOSCOPE_DEPTH", "MALLOSCOPE_MAX_SIZE",
        "MALLOSCOPE_SEED", "MALLOSCOPE_STACKS", "MALLOSCOPE_OUTPUT", "MALLOSCOPE_FOLLOW", "MALLOSCOPE_DUMP"};
    struct options options;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) setenv(names[i], text, 1);
    REQUIRE(options_read(&options));
    REQUIRE(options.rate > 0 && options.depth > 0 && options.depth <= DEPTH_MOST);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    size_t size = strlen(text) + 3;
    char *path = malloc(size);
    for (unsigned attempt = 0; attempt < 3; attempt++)
        if (options_path(text, 4711, attempt, path, size)) REQUIRE(strlen(path) < size);
    free(path);
    const char *counter = options_counter(text);
    REQUIRE(!counter || (counter >= text && counter < text + strlen(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = input_text(bytes, size), *arguments[ARGUMENTS_MOST + 1] = {0};
    int count = 0;
    for (char *at = text; at < text + size && count < ARGUMENTS_MOST; at += strlen(at) + 1)
        arguments[count++] = at;
    for (int i = 0; i < count; i++) {
        read_value(arguments[i]);
        read_as_recorder(arguments[i]);
    }
    if (count) run_command(count, arguments);
    free(text);
    return 0;
}
