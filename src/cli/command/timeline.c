#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/plot.h"
#include "cli/terminal/terminal.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "cli/words/summary.h"
#include "format/json.h"

static const char about[] =
    "Plots the size of the heap over time, with its peak marked.\n" SOURCE_HELP_ONE "\n\n"
    "A column shows the most that was live at any moment of its time. A recording keeps 512 moments;\n"
    "their width doubles whenever the program outlives them. --csv and --json have all of them:\n\n"
    "seconds    middle of the moment, since the start; width how long it is\n"
    "live_max   most bytes that were live, live_last those at its end\n"
    "allocated  bytes that were allocated in it; events how many samples, or frees of them";

static const char examples[] = "  malloscope timeline malloscope.server.4711.mscope\n"
                               "  malloscope timeline 4711 --csv > heap.csv      a running program";

static void write_field(const char *end, double value) {
    char text[JSON_NUMBER_SIZE];
    json_number_text(value, text);
    printf("%s%s", text, end);
}

static void print_csv(const struct model *model) {
    puts("seconds,width,live_max,live_last,allocated,events");
    for (size_t i = 0; i < model->moment_count; i++) {
        const struct model_moment *moment = &model->timeline[i];
        write_field(",", moment->seconds);
        write_field(",", moment->width);
        write_field(",", moment->live_max);
        write_field(",", moment->live_last);
        write_field(",", moment->allocated);
        write_field("\n", (double)moment->events);
    }
}

static void print_json(const struct model *model) {
    struct json json;
    json_start(&json, stdout, true);
    json_object(&json);
    json_key_number(&json, "duration_seconds", model->processes[0].duration);
    json_key_number(&json, "peak_bytes", model->totals.peak.value);
    json_key_number(&json, "peak_error", estimate_error(model->totals.peak));
    json_key_number(&json, "peak_at_most", model->totals.peak_at_most);
    json_key_number(&json, "peak_seconds", model->processes[0].peak_seconds);
    json_key(&json, "timeline");
    json_array(&json);
    for (size_t i = 0; i < model->moment_count; i++) {
        const struct model_moment *moment = &model->timeline[i];
        json_object(&json);
        json_key_number(&json, "seconds", moment->seconds);
        json_key_number(&json, "width", moment->width);
        json_key_number(&json, "live_max", moment->live_max);
        json_key_number(&json, "live_last", moment->live_last);
        json_key_number(&json, "allocated", moment->allocated);
        json_key_integer(&json, "events", (int64_t)moment->events);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    putchar('\n');
}

static void print_for_people(const struct model *model) {
    enum { WIDTH = 80, HEIGHT = 19 };
    const struct model_process *process = &model->processes[0];
    cleanup_text char *peak = estimate_text_bytes(model->totals.peak);
    struct plot plot = {.moments = model->timeline,
        .count = model->moment_count,
        .span = process->duration,
        .peak = peak,
        .peak_seconds = process->peak_seconds};
    const struct model_moment *last = model->moment_count ? &model->timeline[model->moment_count - 1] : NULL;
    if (last && plot.span < last->seconds - last->width / 2) plot.span = last->seconds;
    summary_print(stdout, model);
    notes_print(stdout, model, SORT_LIVE);
    putchar('\n');
    if (!last || plot.span <= 0 || plot_most(&plot, 0, plot.span + last->width) <= 0) {
        puts(model->exact ? "nothing was allocated" : "no allocation was sampled");
        return;
    }
    size_t width = terminal_of(stdout).width;
    plot_print(stdout, &plot, width ? width : WIDTH, HEIGHT);
}

int command_timeline(int argc, char **argv) {
    bool json = false, csv = false;
    struct option_rule rules[] = {
        {0, "json", OPTION_ON, &json, NULL, .help = "one JSON object: the peak, and all moments"},
        {0, "csv", OPTION_ON, &csv, NULL, .help = "comma-separated lines with a header"},
    };
    struct command_line line = {.name = "timeline",
        .usage = "malloscope timeline [--csv | --json] FILE|PID",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_min = 1,
        .arguments_max = 1};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    if (json && csv)
        return message_error(PROBLEM_USAGE, "choose one of them", "--json and --csv exclude each other");
    struct loaded loaded;
    code = load_sources(line.arguments, 1, NULL, &loaded);
    if (code) return code;
    if (loaded.model->process_count > 1) {
        load_free(&loaded);
        return message_error(PROBLEM_USAGE, "name one of the recordings in it",
            "'%s' holds several recordings, and their programs have no common time", line.arguments[0]);
    }
    if (json)
        print_json(loaded.model);
    else if (csv)
        print_csv(loaded.model);
    else
        print_for_people(loaded.model);
    return load_finish(&loaded);
}
