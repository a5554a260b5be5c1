#include "view/leaks.h"
#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/terminal/message.h"
#include "cli/terminal/pieces.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/advice.h"
#include "cli/words/estimate_text.h"
#include "cli/words/leak_text.h"
#include "cli/words/notes.h"
#include "cli/words/site_text.h"
#include "cli/words/stack_text.h"
#include "cli/words/summary.h"
#include "format/machine_output.h"
#include "view/source_frames.h"

#include <string.h>

static const char about[] =
    "Shows what is still allocated, likely leaks first, each with its stack and the reason.\n" SOURCE_HELP
    "\n\n"
    "A likely leak was left behind all along the run and not freed since; or it is older than nearly\n"
    "everything became that was freed at that place; or it comes from a place that never freed anything.\n"
    "Then come blocks that are in use, those of caches for example, and, apart, what was made at start-up\n"
    "and did not grow. What the C library keeps for itself is only counted. malloscope does not follow\n"
    "pointers, so what it shows may still be reachable.\n\n"
    "Each entry tells live bytes and objects, the age of the oldest live allocation, and which share of\n"
    "all objects allocated there was never freed. With few samples '--by site' tells more than single\n"
    "stacks do.";

static const char examples[] = "  malloscope leaks malloscope.server.4711.mscope\n"
                               "  malloscope leaks 4711 -n 3\n"
                               "  malloscope leaks r.mscope --by site --filter parse\n"
                               "  malloscope leaks r.mscope --suppressions lsan.supp --json";

struct leak_report {
    struct loaded loaded;
    struct leaks leaks;
    struct leak_scene scene;
    struct suppressions suppressions;
    enum view_by by;
    uint64_t limit;
    const char *filter;
    struct stack_style style;
};

/* The caller frees the text. */
static char *in_objects(const struct figures *figures) {
    if (!(estimate_error(figures->live_objects) > 0))
        return memory_copy_text(units_counted(figures->live_objects.value, "object").text);
    cleanup_text char *text = estimate_text_count(figures->live_objects);
    return memory_format_text("%s objects", text);
}

/* "12.0 MiB ± 1.50 MiB in 24 ± 3 objects". The caller frees the text. */
static char *live_text(const struct figures *figures) {
    cleanup_text char *bytes = estimate_text_bytes(figures->live_bytes), *objects = in_objects(figures);
    return memory_format_text("%s in %s", bytes, objects);
}

/* Heap, type and scope are among the frames of the stack that is printed below. The line of figures names one of them
 * only where entries are grouped by it. */
static void print_figures(
    const struct leak_report *report, const struct view_row *row, const struct terminal *terminal) {
    const struct model *model = report->loaded.model;
    const struct figures *figures = &row->figures;
    fputs(terminal->bold, stdout);
    struct pieces pieces = {.out = stdout, .width = terminal->width, .indent = ""};
    cleanup_text char *live = estimate_text_bytes(figures->live_bytes);
    pieces_add(&pieces, "%s", live);
    cleanup_text char *objects = in_objects(figures);
    pieces_add(&pieces, "%s", objects);
    if (figures->oldest != UINT64_MAX && row->largest) {
        double age = model->processes[row->largest->process].duration - 1e-9 * (double)figures->oldest;
        pieces_add(&pieces, "oldest %s", units_seconds(age > 0 ? age : 0).text);
    }
    if (figures->total_objects.value > 0)
        pieces_add(&pieces, "%s never freed",
            units_percent(figures->live_objects.value / figures->total_objects.value).text);
    if (report->by == BY_HEAP) pieces_add(&pieces, "heap %s", row->heap);
    if (report->by == BY_TYPE) pieces_add(&pieces, "type %s", row->type);
    if (report->by == BY_SCOPE) pieces_add(&pieces, "scope %s", row->scope);
    pieces_end(&pieces);
    fputs(terminal->plain, stdout);
}

static void print_entry(
    const struct leak_report *report, const struct leak *leak, const struct terminal *terminal) {
    cleanup_text char *why = leak_text_why(leak, &report->scene);
    print_figures(report, leak->row, terminal);
    text_print_titled(stdout, "  why:", why);
    if (leak->row->largest) stack_text_print(&report->loaded, leak->row->largest, &report->style, terminal);
    putchar('\n');
}

static void print_nothing(const struct leak_report *report) {
    const struct model *model = report->loaded.model;
    const char *what =
        model->exact && !notes_incomplete(model) ? "nothing" : "no allocation that was recorded";
    if (model->levels_only)
        puts("no allocations were recorded, so nothing can be said about leaks");
    else
        printf(
            "%s is %s%s\n", what, summary_live_word(model), report->filter ? " and matches the filter" : "");
}

static bool any_live(const struct figures *figures) {
    return figures->live_bytes.value > 0 || figures->live_objects.value > 0;
}

/* What is counted, but not listed as entries. */
static void print_apart(const struct leak_report *report) {
    const struct leaks *leaks = &report->leaks;
    cleanup_text char *held = live_text(&leaks->held), *suppressed = live_text(&leaks->suppressed);
    if (any_live(&leaks->held)) printf("%s the C library keeps for itself until the end\n", held);
    if (!report->suppressions.count) return;
    printf("%s suppressed, by %zu of %s\n", suppressed, suppressions_used(&report->suppressions),
        units_counted((double)report->suppressions.count, "pattern").text);
}

/* Consecutive entries of the list that share a heading. */
struct section {
    const char *title;
    const struct figures *sum;
    size_t first, count;
};

static void print_section(const struct leak_report *report, const struct section *section) {
    struct terminal terminal = terminal_of(stdout);
    const struct leak *list = report->leaks.list + section->first;
    if (!section->count) return;
    cleanup_text char *sum = live_text(section->sum);
    printf("%s%s%s: %s\n\n", terminal.bold, section->title, terminal.plain, sum);
    size_t left = section->first < report->limit ? report->limit - section->first : 0;
    size_t shown = report->limit && left < section->count ? left : section->count;
    struct estimate rest = {0};
    for (size_t i = 0; i < shown; i++) print_entry(report, &list[i], &terminal);
    for (size_t i = shown; i < section->count; i++)
        rest = estimate_add(rest, list[i].row->figures.live_bytes);
    cleanup_text char *rest_text = estimate_text_bytes(rest);
    if (shown < section->count)
        printf("%s %s %s with %s; -n 0 shows all\n\n", terminal_glyphs()->ellipsis,
            units_count((double)(section->count - shown)).text, shown ? "more" : "not shown", rest_text);
}

static void print_entries(const struct leak_report *report) {
    const struct leaks *leaks = &report->leaks;
    size_t likely = 0, start_up = leaks->count;
    while (likely < leaks->count && leaks_is_likely(leaks->list[likely].kind)) likely++;
    while (start_up > likely && leaks->list[start_up - 1].kind == LEAK_START_UP) start_up--;
    struct figures all = leaks->rows.sum;
    figures_add(&all, &leaks->held);
    figures_add(&all, &leaks->suppressed);
    cleanup_text char *bytes = estimate_text_bytes(all.live_bytes), *objects = in_objects(&all);
    printf("%s %s in %s:\n", bytes, summary_live_word(report->loaded.model), objects);
    print_apart(report);
    putchar('\n');
    if (!likely) puts("nothing looks like a leak\n");
    const struct section sections[] = {{"LIKELY LEAKS", &leaks->likely, 0, likely},
        {"IN USE, or so it seems", &leaks->in_use, likely, start_up - likely},
        {"START-UP, not growing", &leaks->start_up, start_up, leaks->count - start_up}};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) print_section(report, &sections[i]);
}

/* JSON */

static void write_sum(struct json *json, const char *key, const struct figures *figures) {
    json_key(json, key);
    json_object(json);
    machine_output_write_figures(json, figures);
    json_object_end(json);
}

static void write_stack(
    struct json *json, const struct leak_report *report, const struct model_stack *stack) {
    struct source_frames frames = {0};
    source_frames_expand_labelled(&frames, report->loaded.model, report->loaded.resolver, stack);
    json_key(json, "stack");
    json_array(json);
    for (size_t i = 0; i < frames.count; i++) {
        const struct source_frame *frame = &frames.frames[i];
        json_object(json);
        json_key_string(json, "function", frame->symbol->function);
        json_key_string(json, "file", frame->symbol->file);
        json_key_integer(json, "line", frame->symbol->line);
        json_key_string(json, "module", frame->module ? frame->module->path : NULL);
        json_object_end(json);
    }
    json_array_end(json);
    source_frames_free(&frames);
}

static void write_births(struct json *json, const struct figures *figures) {
    json_key(json, "births");
    json_array(json);
    for (int i = 0; i < BIRTH_PARTS; i++) json_integer(json, figures->births[i]);
    json_array_end(json);
}

static void write_entry(struct json *json, const struct leak_report *report, const struct leak *leak) {
    cleanup_text char *why = leak_text_why(leak, &report->scene);
    json_object(json);
    json_key_string(json, "kind", leak_text_kind(leak->kind));
    json_key(json, "likely");
    json_boolean(json, leaks_is_likely(leak->kind));
    json_key(json, "uncertain");
    json_boolean(json, leak->uncertain);
    json_key_string(json, "why", why);
    json_key_number(json, "growth_per_second", leak->growth);
    write_births(json, &leak->row->figures);
    json_key(json, "row");
    machine_output_write_row(json, leak->row);
    if (leak->row->largest) write_stack(json, report, leak->row->largest);
    json_object_end(json);
}

static void print_json(const struct leak_report *report) {
    const struct leaks *leaks = &report->leaks;
    struct json json;
    json_start(&json, stdout, true);
    json_object(&json);
    json_key(&json, "totals");
    machine_output_write_totals(&json, report->loaded.model);
    write_sum(&json, "likely", &leaks->likely);
    write_sum(&json, "in_use", &leaks->in_use);
    write_sum(&json, "start_up", &leaks->start_up);
    write_sum(&json, "held", &leaks->held);
    write_sum(&json, "suppressed", &leaks->suppressed);
    json_key(&json, "entries");
    json_array(&json);
    size_t count = report->limit && report->limit < leaks->count ? report->limit : leaks->count;
    for (size_t i = 0; i < count; i++) write_entry(&json, report, &leaks->list[i]);
    json_array_end(&json);
    json_object_end(&json);
    putchar('\n');
}

static void print_for_people(const struct leak_report *report) {
    const struct leaks *leaks = &report->leaks;
    summary_print(stdout, report->loaded.model);
    notes_print(stdout, report->loaded.model, SORT_LIVE);
    advice_print(stdout, &report->loaded, SORT_LIVE);
    if (report->filter)
        notes_print_samples(stdout, report->loaded.model, &leaks->rows.sum, "what matches rest", SORT_LIVE);
    putchar('\n');
    if (leaks->count || any_live(&leaks->held) || any_live(&leaks->suppressed))
        print_entries(report);
    else
        print_nothing(report);
}

int command_leaks(int argc, char **argv) {
    static const char *const leak_by_names[] = {
        "stack", "site", "function", "line", "file", "module", "heap", "type", "scope", NULL};
    static const enum view_by leak_by[] = {
        BY_STACK, BY_SITE, BY_FUNCTION, BY_LINE, BY_FILE, BY_MODULE, BY_HEAP, BY_TYPE, BY_SCOPE};
    int by = 0;
    bool json = false, limit_given = false;
    const char *suppressions = NULL;
    struct leak_report report = {.limit = 10, .style = {.indent = "    "}};
    struct load_options load_options = {0};
    struct option_rule rules[] = {
        {'b', "by", OPTION_CHOICE, &by, "WHAT",
            .help = "what makes an entry (default stack); of several stacks\nthe largest is shown:",
            .choices = leak_by_names},
        {'n', "limit", OPTION_COUNT, &report.limit, "N", .ret_given = &limit_given,
            .help = "show N entries (default 10; 0 = all)"},
        FILTER_RULE(report.filter),
        {0, "suppressions", OPTION_FILE, &suppressions, "FILE", .help = SUPPRESSIONS_HELP},
        {0, "json", OPTION_ON, &json, NULL, .help = "one JSON object, with all entries"},
        {0, "raw-site", OPTION_ON, &report.style.raw_site, NULL,
            .help = "show operator new, containers, strdup, ... too"},
        {'v', "verbose", OPTION_ON, &report.style.full_names, NULL,
            .help = "names in full, with all arguments"},
        LOAD_RULES(load_options),
    };
    struct command_line line = {.name = "leaks",
        .usage = "malloscope leaks [OPTION]... FILE|PID...",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    if (json && !limit_given) report.limit = 0;

    struct problem problem = {0};
    if (suppressions && suppressions_read(suppressions, &report.suppressions, &problem) < 0)
        return message_problem(&problem);
    code = load_sources(line.arguments, line.argument_count, &load_options, &report.loaded);
    if (code) {
        suppressions_free(&report.suppressions);
        return code;
    }
    report.by = leak_by[by];
    report.scene = leaks_scene_of(report.loaded.model);
    struct view_query query = {
        .by = report.by, .sort = SORT_LIVE, .filter = report.filter, .raw_sites = report.style.raw_site};
    struct progress progress;
    progress_start(&progress, PROGRESS_GROUPING);
    int r = leaks_find(
        report.loaded.model, report.loaded.resolver, &query, &report.suppressions, &report.leaks, &problem);
    progress_end(&progress);
    if (r < 0) {
        load_free(&report.loaded);
        suppressions_free(&report.suppressions);
        return message_problem(&problem);
    }
    if (json)
        print_json(&report);
    else
        print_for_people(&report);
    leaks_free(&report.leaks);
    suppressions_free(&report.suppressions);
    return load_finish(&report.loaded);
}
