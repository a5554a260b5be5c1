#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/output/page.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/notes.h"
#include "cli/words/row_text.h"
#include "cli/words/summary.h"
#include "format/machine_output.h"
#include "format/page_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One side of the comparison: a recording, and which moment of it is compared. */
struct moment {
    char *source;
    bool at_peak;
    double seconds; /* since the start; < 0: the end of the recording, or now */
    struct loaded loaded;
    struct view_rows rows;
};

struct comparison {
    struct moment base, fresh;
    int by, value;
    uint64_t limit;
    const char *filter;
    bool json, html, all, raw_site, verbose;
    struct page_output page;
    struct load_options load_options;
    struct diff diff;
};

static const char about[] =
    "Shows what changed from BASE to NEW, and which changes are more than chance.\n\n"
    "BASE and NEW are recordings, archives, folders of recordings or running programs, as everywhere.\n"
    "FILE@peak is the moment when the heap of FILE was largest; FILE@30s is what was allocated in the\n"
    "first 30 seconds and is still live: 'diff FILE@30s FILE' shows what came since and stayed.\n\n"
    "Lines are matched by function, file and library, not by address, so the two may come from different\n"
    "builds or machines; --by site and --by line compare line numbers too, which move when a source is\n"
    "edited.\n\n"
    "CHANGE  from BASE to NEW, in bytes, or in objects with --value objects or allocs\n"
    "+-      half the width of its 95 % confidence interval; exact recordings have none\n"
    "A line with * is significant: if BASE and NEW were the same program, chance would mark any line at\n"
    "all in fewer than 5 of 100 comparisons. Other lines are shown with --all.\n\n"
    "--html writes a page for a browser, as 'flame' does: a flame graph of both, red where NEW has more\n"
    "and blue where it has less, and the lines for every value.";

static const char examples[] =
    "  malloscope diff yesterday.mscope today.mscope\n"
    "  malloscope diff server.mscope@60s 4711 --by site     what a server gathers\n"
    "  malloscope diff old.mscope@peak new.mscope@peak --json\n"
    "  malloscope diff old.mscope new.mscope --html -o change.html     a flame graph of what changed";

static const char *const value_names[] = {"live", "peak", "total", "objects", "peak-objects", "allocs", NULL};
static const char *const diff_by_names[] = {
    "function", "site", "line", "file", "module", "heap", "type", "scope", NULL};
static const enum view_by diff_by[] = {
    BY_FUNCTION, BY_SITE, BY_LINE, BY_FILE, BY_MODULE, BY_HEAP, BY_TYPE, BY_SCOPE};

/* Loading */

/* Splits "FILE@peak" and "FILE@30s". A text that is the name of an existing file is taken as that file. */
static int moment_read(struct moment *moment, const char *text) {
    const char *at = strrchr(text, '@');
    moment->source = memory_copy_text(text);
    moment->seconds = -1;
    if (!at || access(text, F_OK) == 0) return 0;
    moment->source[at - text] = '\0';
    if (strcmp(at, "@peak") == 0)
        moment->at_peak = true;
    else if (!units_parse_seconds(at + 1, &moment->seconds))
        return message_error(PROBLEM_USAGE, "write FILE@peak, or FILE@30s for a time after the start",
            "'%s' is not a moment of '%s'", at + 1, moment->source);
    return 0;
}

static int moment_load(struct moment *moment, const struct comparison *comparison) {
    int code = load_moment(moment->source, moment->seconds, &comparison->load_options, &moment->loaded);
    if (code) return code;
    double lasted = moment->loaded.model->process_count ? moment->loaded.model->processes[0].duration : 0;
    if (moment->seconds > lasted)
        message_note(
            "'%s' lasted only %s: this compares all of it", moment->source, units_seconds(lasted).text);
    struct problem problem = {0};
    struct view_query query = {diff_by[comparison->by], SORT_LIVE, comparison->filter, comparison->raw_site};
    struct progress progress;
    progress_start(&progress, PROGRESS_GROUPING);
    int r = view_rows_query(moment->loaded.model, moment->loaded.resolver, &query, &moment->rows, &problem);
    progress_end(&progress);
    return r < 0 ? message_problem(&problem) : 0;
}

static void moment_free(struct moment *moment) {
    view_rows_free(&moment->rows);
    load_free(&moment->loaded);
    free(moment->source);
}

static struct diff_side side_of(const struct moment *moment) {
    return (struct diff_side){
        &moment->rows, moment->at_peak, moment->loaded.model->exact ? 1 : moment->loaded.model->rate};
}

/* Printing */

static struct unit_text amount_text(const struct comparison *comparison, double amount) {
    return diff_counts_objects((enum diff_value)comparison->value) ? units_count(amount)
                                                                   : units_bytes(amount);
}

static char *change_text(const struct comparison *comparison, double change) {
    if (change == 0) return memory_copy_text("0");
    return memory_format_text("%s%s", change > 0 ? "+" : "-", amount_text(comparison, fabs(change)).text);
}

static char *error_text(const struct comparison *comparison, const struct diff_row *row) {
    if (row->error <= 0) return NULL;
    return memory_format_text(
        "%s%s", terminal_glyphs()->plus_minus, amount_text(comparison, row->error).text);
}

static size_t rows_shown(const struct comparison *comparison) {
    const struct diff *diff = &comparison->diff;
    size_t count = comparison->all ? diff->count : diff->significant_count;
    return comparison->limit && comparison->limit < count ? comparison->limit : count;
}

static void print_table(const struct comparison *comparison) {
    struct sheet sheet;
    sheet_start(&sheet, terminal_of(stdout), "SITE");
    sheet_add_column(&sheet, "CHANGE", 0);
    sheet_add_column(&sheet, terminal_glyphs()->plus_minus, 1);
    sheet_add_column(&sheet, "", 2);
    sheet_add_column(&sheet, "BASE", 4);
    sheet_add_column(&sheet, "NEW", 3);
    for (size_t i = 0; i < rows_shown(comparison); i++) {
        const struct diff_row *row = &comparison->diff.rows[i];
        struct sheet_row *cells = sheet_add_row(&sheet);
        cells->cells[0] = change_text(comparison, row->change);
        cells->cells[1] = error_text(comparison, row);
        cells->cells[2] = row->significant ? memory_copy_text("*") : NULL;
        cells->cells[3] = memory_copy_text(amount_text(comparison, row->base.value).text);
        cells->cells[4] = memory_copy_text(amount_text(comparison, row->fresh.value).text);
        cells->last = row_text(row->row, diff_by[comparison->by], comparison->verbose);
    }
    sheet_fit(&sheet);
    sheet_print_titles(&sheet);
    for (size_t i = 0; i < sheet.row_count; i++) sheet_print_row(&sheet, i);
    sheet_free(&sheet);
}

static void print_side(const char *title, const struct moment *moment, const struct comparison *comparison,
    struct estimate total) {
    static const char *const words[] = {
        "live", "at the peak", "allocated in total", "objects live", "objects at the peak", "allocations"};
    const struct model *model = moment->loaded.model;
    int value = comparison->value;
    if (moment->at_peak && value == DIFF_LIVE) value = DIFF_PEAK;
    if (moment->at_peak && value == DIFF_OBJECTS) value = DIFF_PEAK_OBJECTS;
    cleanup_text char *source = text_clean(moment->source);
    printf("%s  %s", title, source);
    if (moment->seconds >= 0) printf(", after %s", units_seconds(moment->seconds).text);
    printf(": %s %s", amount_text(comparison, total.value).text, words[value]);
    double error = estimate_error(total);
    if (error > 0 && total.value > 0)
        printf(" (%s%s)", terminal_glyphs()->plus_minus, units_percent(error / total.value).text);
    printf(
        ", %s\n", model->exact ? "exact" : units_counted((double)model->totals.sum.samples, "sample").text);
}

/* The samples that the figures of a side rest on: with --filter, of what matches. */
static void note_samples(
    const char *title, const struct moment *moment, const struct comparison *comparison) {
    bool live = comparison->value == DIFF_LIVE || comparison->value == DIFF_OBJECTS;
    cleanup_text char *what = memory_format_text("%s rest", title);
    notes_print_samples(stdout, moment->loaded.model, &moment->rows.sum, what,
        live && !moment->at_peak ? SORT_LIVE : SORT_TOTAL);
}

static void print_for_people(const struct comparison *comparison) {
    const struct diff *diff = &comparison->diff;
    print_side("BASE", &comparison->base, comparison, diff->total.base);
    print_side("NEW ", &comparison->fresh, comparison, diff->total.fresh);
    note_samples("BASE", &comparison->base, comparison);
    note_samples("NEW", &comparison->fresh, comparison);
    cleanup_text char *change = change_text(comparison, diff->total.change);
    cleanup_text char *error = error_text(comparison, &diff->total);
    if (diff->total.change == 0)
        puts("no change in all");
    else
        printf("change %s%s%s%s\n", change, error ? " " : "", error ? error : "",
            diff->total.significant ? ", significant" : ", which may be chance");
    printf("%zu of %s changed significantly\n\n", diff->significant_count,
        units_counted((double)diff->count, "line").text);
    size_t shown = rows_shown(comparison);
    if (shown) print_table(comparison);
    size_t left = (comparison->all ? diff->count : diff->significant_count) - shown;
    if (left) printf("%s %zu more; -n 0 shows all\n", terminal_glyphs()->ellipsis, left);
    if (!comparison->all && diff->count > diff->significant_count)
        printf("%s%zu without significant change; --all shows them\n",
            shown ? "" : "nothing: ", diff->count - diff->significant_count);
}

static void write_row(struct json *json, const struct diff_row *row) {
    json_key_number(json, "base", row->base.value);
    json_key_number(json, "base_error", estimate_error(row->base));
    json_key_number(json, "new", row->fresh.value);
    json_key_number(json, "new_error", estimate_error(row->fresh));
    json_key_number(json, "change", row->change);
    json_key_number(json, "change_error", row->error);
    json_key(json, "significant");
    json_boolean(json, row->significant);
}

static void write_side(struct json *json, const char *name, const struct moment *moment) {
    const struct figures *sum = &moment->rows.sum;
    bool exact = moment->loaded.model->exact;
    json_key(json, name);
    json_object(json);
    json_key_boolean(json, "exact", exact);
    json_key_number(json, "rate", (double)moment->loaded.model->rate);
    json_key_number(json, "samples", (double)sum->samples);
    json_key_number(json, "live_samples", (double)sum->live_samples);
    machine_output_write_trust(json, sum, exact);
    json_object_end(json);
}

static void print_json(const struct comparison *comparison) {
    const struct diff *diff = &comparison->diff;
    struct json json;
    json_start(&json, stdout, true);
    json_object(&json);
    json_key_string(&json, "value", value_names[comparison->value]);
    json_key(&json, "totals");
    json_object(&json);
    write_row(&json, &diff->total);
    json_object_end(&json);
    write_side(&json, "base", &comparison->base);
    write_side(&json, "new", &comparison->fresh);
    json_key_number(&json, "lines", (double)diff->count);
    json_key_number(&json, "significant", (double)diff->significant_count);
    json_key(&json, "rows");
    json_array(&json);
    size_t count = comparison->limit && comparison->limit < diff->count ? comparison->limit : diff->count;
    for (size_t i = 0; i < count; i++) {
        const struct view_row *row = diff->rows[i].row;
        json_object(&json);
        json_key_string(&json, "function", row->function);
        json_key_string(&json, "file", row->file);
        json_key_number(&json, "line", row->line);
        json_key_string(&json, "module", row->module);
        json_key_string(&json, "heap", row->heap);
        json_key_string(&json, "type", row->type);
        json_key_string(&json, "scope", row->scope);
        write_row(&json, &diff->rows[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    putchar('\n');
}

static struct page_side page_side_of(const struct moment *moment) {
    return (struct page_side){
        moment->loaded.model, moment->loaded.resolver, side_of(moment), moment->source, moment->seconds};
}

static int write_page(struct comparison *comparison) {
    struct page_comparison page = {page_side_of(&comparison->base), page_side_of(&comparison->fresh),
        diff_by[comparison->by], (enum diff_value)comparison->value};
    struct page_options *options = &comparison->page.options;
    options->comparison = &page;
    options->filter = comparison->filter;
    options->raw_sites = comparison->raw_site;
    options->sysroot = comparison->load_options.sysroot;
    int code = page_write_comparison(&comparison->base.loaded, &comparison->fresh.loaded, &comparison->page);
    options->comparison = NULL;
    return code;
}

static int print(struct comparison *comparison) {
    struct diff_side base = side_of(&comparison->base), fresh = side_of(&comparison->fresh);
    enum view_by by = diff_by[comparison->by];
    diff_make(&base, &fresh, (enum diff_value)comparison->value, by, &comparison->diff);
    if (comparison->json)
        print_json(comparison);
    else
        print_for_people(comparison);
    diff_free(&comparison->diff);
    return 0;
}

/* Heaps are shown on both sides if one of them has heaps of its own: otherwise equal lines would not match. */
static void show_heaps_alike(struct model *base, struct model *fresh) {
    base->shows_heaps = fresh->shows_heaps = model_has_heaps(base) || model_has_heaps(fresh);
}

static int compare(struct comparison *comparison) {
    int code = moment_load(&comparison->base, comparison);
    if (!code) code = moment_load(&comparison->fresh, comparison);
    if (!code) show_heaps_alike(comparison->base.loaded.model, comparison->fresh.loaded.model);
    if (!code) code = comparison->html ? write_page(comparison) : print(comparison);
    if (code) return code;
    bool damaged = comparison->base.loaded.model->damaged || comparison->fresh.loaded.model->damaged;
    code = message_finish_output();
    return code || !damaged ? code : PROBLEM_DAMAGED;
}

int command_diff(int argc, char **argv) {
    struct comparison comparison = {.limit = 20, .page.options.nodes_max = PAGE_NODES};
    bool limit_given = false;
    struct option_rule rules[] = {
        {'b', "by", OPTION_CHOICE, &comparison.by, "WHAT",
            .help = "what makes a line (default function):", .choices = diff_by_names},
        {0, "value", OPTION_CHOICE, &comparison.value, "WHAT",
            .help = "what is compared (default live):", .choices = value_names},
        {'n', "limit", OPTION_COUNT, &comparison.limit, "N", .ret_given = &limit_given,
            .help = "show N lines (default 20; 0 = all)"},
        {'a', "all", OPTION_ON, &comparison.all, NULL, .help = "show changes that may be chance, too"},
        FILTER_RULE(comparison.filter),
        {0, "json", OPTION_ON, &comparison.json, NULL, .help = "one JSON object, with all lines"},
        {0, "html", OPTION_ON, &comparison.html, NULL,
            .help = "a page for a browser: the flame graph of both"},
        OUTPUT_RULES(comparison.page.output),
        PAGE_RULES(comparison.page),
        {0, "raw-site", OPTION_ON, &comparison.raw_site, NULL,
            .help = "do not look behind operator new, containers, strdup, ..."},
        {'v', "verbose", OPTION_ON, &comparison.verbose, NULL, .help = "names in full"},
        LOAD_RULES(comparison.load_options),
    };
    struct command_line line = {.name = "diff",
        .usage = "malloscope diff [OPTION]... BASE NEW",
        OPTIONS_TABLE(rules, about, examples),
        .arguments_min = 2,
        .arguments_max = 2};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    if (comparison.json && comparison.html)
        return message_error(PROBLEM_USAGE, "choose one of them", "--json and --html exclude each other");
    if (comparison.page.output.path && !comparison.html)
        return message_error(PROBLEM_USAGE, "add --html, or redirect the output", "-o is for the page");
    if (comparison.json && !limit_given) comparison.limit = 0;
    code = moment_read(&comparison.base, line.arguments[0]);
    if (!code) code = moment_read(&comparison.fresh, line.arguments[1]);
    if (!code) code = compare(&comparison);
    moment_free(&comparison.base);
    moment_free(&comparison.fresh);
    return code;
}
