#include "cli/advice.h"
#include "cli/command.h"
#include "cli/load.h"
#include "cli/memory.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/site_text.h"
#include "cli/summary.h"
#include "cli/units.h"

#include <string.h>

static const char about[] =
    "Shows what is still allocated, largest first, each with its full stack.\n" SOURCE_HELP "\n"
    "For a program that has ended this is what it never freed.\n\n"
    "Each entry tells live bytes and objects, the age of the oldest live allocation, and which share of all\n"
    "objects allocated there was never freed: 100 % means nothing from there was ever freed, a small share "
    "is\n"
    "rather a cache or work under way.";

static const char examples[] = "  malloscope leaks malloscope.server.4711.mscope\n"
                               "  malloscope leaks 4711 -n 3\n"
                               "  malloscope leaks r.mscope --by site --filter parse";

/* Stacks tell their heap, type and scope among their frames: the entry says it where it is made by that. */
static void print_entry(const struct loaded *loaded, const struct view_row *row, enum view_by by,
    const struct stack_style *style, const struct terminal *terminal) {
    const struct model *model = loaded->model;
    const struct figures *figures = &row->figures;
    fputs(terminal->bold, stdout);
    struct pieces pieces = {.out = stdout, .width = terminal->width, .indent = ""};
    if (estimate_error(figures->live_bytes) <= 0)
        pieces_add(&pieces, "%s", bytes_text(figures->live_bytes.value).text);
    else
        pieces_add(&pieces, "%s %s %s", bytes_text(figures->live_bytes.value).text, glyphs()->plus_minus,
            bytes_text(estimate_error(figures->live_bytes)).text);
    pieces_add(&pieces, "%s", counted_text(figures->live_objects.value, "object").text);
    if (figures->oldest != UINT64_MAX && row->largest) {
        double age = model->processes[row->largest->process].duration - 1e-9 * (double)figures->oldest;
        pieces_add(&pieces, "oldest %s", seconds_text(age > 0 ? age : 0).text);
    }
    if (figures->total_objects.value > 0)
        pieces_add(&pieces, "%s never freed",
            percent_text(figures->live_objects.value / figures->total_objects.value).text);
    if (by == BY_HEAP) pieces_add(&pieces, "heap %s", row->heap);
    if (by == BY_TYPE) pieces_add(&pieces, "type %s", row->type);
    if (by == BY_SCOPE) pieces_add(&pieces, "scope %s", row->scope);
    pieces_end(&pieces);
    fputs(terminal->plain, stdout);
    if (row->largest) stack_print(loaded, row->largest, style, terminal);
    putchar('\n');
}

static void print_nothing(const struct model *model, const char *filter) {
    const char *what =
        model->exact && !summary_is_incomplete(model) ? "nothing" : "no allocation that was recorded";
    if (model->levels_only)
        puts("no allocations were recorded, so nothing can be said about leaks");
    else
        printf("%s is %s%s\n", what, summary_live_word(model), filter ? " and matches the filter" : "");
}

static void print_entries(const struct loaded *loaded, const struct view_rows *rows, enum view_by by,
    uint64_t limit, const struct stack_style *style) {
    struct terminal terminal = terminal_of(stdout);
    printf("%s %s in %s:\n\n", bytes_text(rows->sum.live_bytes.value).text, summary_live_word(loaded->model),
        counted_text(rows->sum.live_objects.value, "object").text);
    size_t live = 0;
    while (live < rows->count && rows->rows[live].figures.live_bytes.value > 0) live++;
    size_t shown = limit && limit < live ? limit : live;
    for (size_t i = 0; i < shown; i++) print_entry(loaded, &rows->rows[i], by, style, &terminal);
    if (shown == live) return;
    double rest = 0;
    for (size_t i = shown; i < live; i++) rest += rows->rows[i].figures.live_bytes.value;
    printf("%s %s more with %s; -n 0 shows all\n", glyphs()->ellipsis,
        count_text((double)(live - shown)).text, bytes_text(rest).text);
}

int command_leaks(int argc, char **argv) {
    static const char *const leak_by_names[] = {
        "stack", "site", "function", "line", "file", "module", "heap", "type", "scope", NULL};
    static const enum view_by leak_by[] = {
        BY_STACK, BY_SITE, BY_FUNCTION, BY_LINE, BY_FILE, BY_MODULE, BY_HEAP, BY_TYPE, BY_SCOPE};
    int by = 0;
    uint64_t limit = 10;
    const char *filter = NULL;
    struct stack_style style = {.indent = "    "};
    struct symbol_wishes wishes = {0};
    struct option_rule rules[] = {
        {'b', "by", OPTION_CHOICE, &by, "WHAT",
            .help = "what makes an entry (default stack); of several stacks\nthe largest is shown:",
            .choices = leak_by_names},
        {'n', "limit", OPTION_COUNT, &limit, "N", .help = "show N entries (default 10; 0 = all)"},
        {'F', "filter", OPTION_TEXT, &filter, "RE", .help = FILTER_HELP},
        {0, "raw-site", OPTION_ON, &style.raw_site, NULL,
            .help = "show operator new, containers, strdup, ... too"},
        {'v', "verbose", OPTION_ON, &style.full_names, NULL, .help = "names in full, with all arguments"},
        SYMBOL_RULES(wishes),
    };
    struct command_line line = {.name = "leaks",
        .usage = "malloscope leaks [OPTION]... FILE|PID...",
        .about = about,
        .examples = examples,
        .rules = rules,
        .rule_count = sizeof rules / sizeof *rules,
        .arguments_min = 1,
        .arguments_max = (size_t)-1};
    enum options_result parsed = options_parse(&line, argc, argv);
    if (parsed != OPTIONS_FINE) return parsed == OPTIONS_WRONG ? PROBLEM_USAGE : message_finish_output();

    struct loaded loaded;
    int code = load_sources(line.arguments, line.argument_count, &wishes, &loaded);
    if (code) return code;
    struct problem problem = {0};
    struct view_rows rows;
    struct view_query query = {leak_by[by], SORT_LIVE, filter, style.raw_site};
    if (view_rows_query(loaded.model, loaded.resolver, &query, &rows, &problem) < 0) {
        load_free(&loaded);
        return message_problem(&problem);
    }
    summary_print(stdout, loaded.model);
    summary_print_notes(stdout, loaded.model, SORT_LIVE);
    advice_print(stdout, &loaded, SORT_LIVE);
    putchar('\n');
    if (rows.sum.live_bytes.value > 0)
        print_entries(&loaded, &rows, query.by, limit, &style);
    else
        print_nothing(loaded.model, filter);
    view_rows_free(&rows);
    return load_finish(&loaded);
}
