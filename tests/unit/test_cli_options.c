/* Command lines. What is wrong is told on stderr, which these tests send away. */
#include "check.h"
#include "cli/options/options.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct values {
    bool force, follow;
    const char *output;
    uint64_t limit, rate, gate;
    double percent;
    int by;
    size_t count;
    char *first;
};

static const char *const by_choices[] = {"site", "line", NULL};

static enum options_result parse(struct values *values, enum argument_kind kind, char **argv) {
    *values = (struct values){.follow = true, .limit = 20, .gate = 7};
    struct option_rule rules[] = {
        {'f', "force", OPTION_ON, &values->force, NULL, .help = ""},
        {0, "no-follow", OPTION_OFF, &values->follow, NULL, .help = "", .environment = "TEST_FOLLOW"},
        {'o', "output", OPTION_TEXT, &values->output, "FILE", .help = ""},
        {'n', "limit", OPTION_COUNT, &values->limit, "N", .help = ""},
        {0, "rate", OPTION_SIZE, &values->rate, "N", .help = "", .environment = "TEST_RATE"},
        {0, "gate", OPTION_SIZE_OR_NONE, &values->gate, "[=N]", .help = ""},
        {0, "min", OPTION_PERCENT, &values->percent, "P", .help = ""},
        {0, "by", OPTION_CHOICE, &values->by, "BY", .help = "", .choices = by_choices},
    };
    struct command_line line = {.name = "test",
        .usage = "test",
        .about = "",
        .rules = rules,
        .rule_count = sizeof rules / sizeof *rules,
        .arguments_min = 1,
        .arguments_max = 3,
        .argument_kind = kind};
    int argc = 0;
    while (argv[argc]) argc++;
    enum options_result result = options_parse(&line, argc, argv);
    values->count = line.argument_count;
    values->first = line.argument_count ? line.arguments[0] : NULL;
    return result;
}

#define PARSE(values, ...) parse(values, ARGUMENT_SOURCE, (char *[]){"test", __VA_ARGS__, NULL})

static void options_are_taken_in_every_form(void) {
    struct values values;
    CHECK(PARSE(&values, "-f", "--output", "x", "file", "-n5", "--rate=64K", "--min", "2.5%", "--by=line") ==
          OPTIONS_FINE);
    CHECK(values.force && values.follow);
    CHECK_TEXT(values.output, "x");
    CHECK_EQUAL(values.limit, 5);
    CHECK_EQUAL(values.rate, 65536);
    CHECK_EQUAL(values.percent, 2.5);
    CHECK_EQUAL(values.by, 1);
    CHECK_EQUAL(values.count, 1);
    CHECK_TEXT(values.first, "file");
    CHECK(PARSE(&values, "-fo", "y", "--no-follow", "-") == OPTIONS_FINE);
    CHECK_TEXT(values.output, "y");
    CHECK(!values.follow);
    CHECK_TEXT(values.first, "-");
    CHECK(PARSE(&values, "--", "-f") == OPTIONS_FINE);
    CHECK(!values.force);
    CHECK_TEXT(values.first, "-f");
}

static void a_value_may_be_left_out(void) {
    struct values values;
    CHECK(PARSE(&values, "x") == OPTIONS_FINE);
    CHECK_EQUAL(values.gate, 7);
    CHECK(PARSE(&values, "--gate", "5") == OPTIONS_FINE);
    CHECK_EQUAL(values.gate, 0);
    CHECK_TEXT(values.first, "5");
    CHECK(PARSE(&values, "--gate=5K", "x") == OPTIONS_FINE);
    CHECK_EQUAL(values.gate, 5120);
    CHECK(PARSE(&values, "--gate=", "x") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "--gate=much", "x") == OPTIONS_WRONG);
}

static void another_commands_options_are_left_alone(void) {
    struct values values;
    CHECK(
        parse(&values, ARGUMENT_PROGRAM, (char *[]){"test", "-f", "prog", "-n", "--", NULL}) == OPTIONS_FINE);
    CHECK(values.force);
    CHECK_EQUAL(values.count, 3);
    CHECK_EQUAL(values.limit, 20);
}

static void wrong_lines_are_refused(void) {
    struct values values;
    CHECK(PARSE(&values, "--forse", "x") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "-z", "x") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "x", "-n") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "x", "-n", "many") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "x", "--force=1") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "x", "--by", "lines") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "x", "--min", "101") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "x", "--min", "nan") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "-f") == OPTIONS_WRONG);
    CHECK(PARSE(&values, "1", "2", "3", "4") == OPTIONS_WRONG);
}

static void the_environment_stands_in(void) {
    struct values values;
    setenv("TEST_RATE", "1M", 1);
    setenv("TEST_FOLLOW", "0", 1);
    CHECK(PARSE(&values, "x") == OPTIONS_FINE);
    CHECK_EQUAL(values.rate, 1048576);
    CHECK(!values.follow);
    CHECK(PARSE(&values, "x", "--rate", "8") == OPTIONS_FINE);
    CHECK_EQUAL(values.rate, 8);
    setenv("TEST_FOLLOW", "1", 1);
    CHECK(PARSE(&values, "x") == OPTIONS_FINE);
    CHECK(values.follow);
    CHECK(PARSE(&values, "x", "--no-follow") == OPTIONS_FINE);
    CHECK(!values.follow);
    setenv("TEST_FOLLOW", "maybe", 1);
    CHECK(PARSE(&values, "x") == OPTIONS_WRONG);
    setenv("TEST_FOLLOW", "", 1);
    setenv("TEST_RATE", "fast", 1);
    CHECK(PARSE(&values, "x") == OPTIONS_WRONG);
    unsetenv("TEST_RATE");
}

static void take_names(const struct command_line *line, void *context) {
    const struct option_rule *option;
    for (size_t i = 0; (option = options_at(line, i)); i++) {
        strcat(context, option->name);
        strcat(context, " ");
    }
}

static void the_table_can_be_read(void) {
    struct values values;
    char names[128] = "";
    options_read_help(take_names, names);
    CHECK(PARSE(&values, "--help") == OPTIONS_HELP_PRINTED);
    options_read_help(NULL, NULL);
    CHECK_TEXT(names, "force no-follow output limit rate gate min by help ");
}

int main(void) {
    int saved = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    options_are_taken_in_every_form();
    a_value_may_be_left_out();
    another_commands_options_are_left_alone();
    wrong_lines_are_refused();
    the_environment_stands_in();
    the_table_can_be_read();
    dup2(saved, STDERR_FILENO);
    return check_result();
}
