#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/units.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "cli/words/summary.h"
#include "format/machine_output.h"

static const char about[] = "Shows the totals of a recording and how good its stacks are.\n" SOURCE_HELP "\n"
                            "Names are not looked up (symbolization), so this is quick.";

static const char examples[] = "  malloscope stats 4711\n"
                               "  malloscope stats r.mscope --json | jq .totals.peak_bytes";

static void print_json(const struct model *model) {
    struct json json;
    json_start(&json, stdout, true);
    json_object(&json);
    json_key(&json, "totals");
    machine_output_write_totals(&json, model);
    json_key(&json, "health");
    machine_output_write_health(&json, model);
    json_key(&json, "heaps");
    machine_output_write_heaps(&json, model);
    json_object_end(&json);
    putchar('\n');
}

static void print_bytes(const char *title, struct estimate bytes, struct estimate objects, bool exact) {
    printf("%-20s %s", title, units_bytes(bytes.value).text);
    if (!exact) printf(" %s %s", terminal_glyphs()->plus_minus, units_bytes(estimate_error(bytes)).text);
    printf(" in %s", units_count(objects.value).text);
    if (!exact) printf(" %s %s", terminal_glyphs()->plus_minus, units_count(estimate_error(objects)).text);
    puts(" objects");
}

static void print_for_people(const struct model *model) {
    const struct totals *totals = &model->totals;
    print_bytes("live", totals->sum.live_bytes, totals->sum.live_objects, model->exact);
    cleanup_text char *peak = estimate_text_peak(totals);
    cleanup_text char *peak_objects = estimate_text_count(totals->sum.at_peak_objects);
    printf("%-20s %s in %s objects\n", "peak", peak, peak_objects);
    print_bytes("total", totals->sum.total_bytes, totals->sum.total_objects, model->exact);
    printf("%-20s %s%s%s\n", "exact total", units_bytes(totals->exact_total_bytes).text,
        model_has_heaps(model) ? " of malloc's heap" : "",
        totals->exact_is_complete ? "" : " at least: up to one sampling interval a thread is missing");
    printf("%-20s %s\n", "frees", units_count(totals->sum.freed_objects).text);
    printf("%-20s %s, %s with live blocks\n", "call sites", units_count((double)totals->call_sites).text,
        units_count((double)totals->active_call_sites).text);
    double all = totals->sum.total_objects.value;
    printf("%-20s %s of the allocations\n", "temporary",
        units_percent(all > 0 ? totals->sum.temporary_objects / all : 0).text);
    printf("%-20s %s, %s live\n", "samples", units_count((double)totals->sum.samples).text,
        units_count((double)totals->sum.live_samples).text);
    printf("%-20s %s\n", "rate",
        !notes_is_whole(model) && model->exact ? "exact, but incomplete"
        : model->exact                         ? "exact, every allocation"
                                               : units_bytes((double)model->rate).text);
    printf("%-20s %s\n", "drops", units_count((double)totals->drops_total).text);
    printf("%-20s %s\n", "recorder", units_bytes((double)totals->recorder_bytes).text);
    printf("%-20s %s complete, %.1f frames, confidence %s\n", "stacks",
        units_percent(model->health.complete).text, model->health.mean_depth,
        model->health.confidence ? model->health.confidence : "?");
    if (model_has_heaps(model)) {
        puts("heaps");
        summary_print_heaps(stdout, model);
    }
    notes_print(stdout, model, SORT_LIVE);
}

int command_stats(int argc, char **argv) {
    bool json = false;
    struct option_rule rules[] = {
        {0, "json", OPTION_ON, &json, NULL, .help = "one JSON object: totals, health and heaps"},
    };
    struct command_line line = {.name = "stats",
        .usage = "malloscope stats [--json] FILE|PID...",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    struct loaded loaded;
    if (!load_begin(&line, argc, argv, NULL, &loaded, &code)) return code;
    if (json)
        print_json(loaded.model);
    else
        print_for_people(loaded.model);
    return load_finish(&loaded);
}
