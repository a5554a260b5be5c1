#include "base/memory.h"
#include "cli/command/command.h"
#include "cli/input/load.h"
#include "cli/options/options.h"
#include "cli/output/page.h"
#include "cli/terminal/message.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/sheet.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/advice.h"
#include "cli/words/estimate_text.h"
#include "cli/words/notes.h"
#include "cli/words/row_text.h"
#include "cli/words/site_text.h"
#include "cli/words/stack_text.h"
#include "cli/words/summary.h"
#include "format/machine_output.h"

#include <string.h>

struct report {
    struct loaded loaded;
    struct view_rows rows;
    int by, sort;
    uint64_t limit; /* 0 = all */
    const char *filter;
    bool json, csv, html, raw_site, verbose;
    bool sort_given;
    struct page_output page;
    struct load_options load_options;
};

static const char about[] =
    "Shows who allocated what: one line a site, largest first.\n" SOURCE_HELP "\n\n"
    "A site, or call site, is the innermost source line outside operator new, allocators, the standard\n"
    "containers and functions such as strdup; --raw-site takes the innermost line as it is. Every\n"
    "grouping puts each allocation under its site, so that the lines add up to the totals: 'line' joins\n"
    "functions that share a source line, 'function', 'file' and 'module' join all sites of one, 'stack'\n"
    "joins nothing, 'process' joins all of a process, and 'thread' shows the exact bytes each thread\n"
    "allocated.\n\n"
    "Programs that use malloscope.h name heaps, types and scopes of their own: a site then has a line for\n"
    "each heap and type, and 'heap', 'type' and 'scope' (the innermost) join all that have one.\n\n"
    "Long names of C++ and Rust functions lose arguments: Table<...>::find(...); --verbose keeps them,\n"
    "and so do --json, --csv and exports.\n\n"
    "LIVE   bytes allocated and not freed (at exit, if the program has ended)\n"
    "PEAK   bytes live at the moment when the whole heap was largest: adds up to the heap's peak\n"
    "TOTAL  bytes ever allocated, COUNT how many allocations\n"
    "+-     half the width of the 95 % confidence interval of the figure before it; exact recordings have "
    "none\n"
    "TEMP   share of the allocations that were freed within about a millisecond, by whichever thread";

static const char examples[] = "  malloscope report malloscope.server.4711.mscope\n"
                               "  malloscope report 4711 --sort peak -n 50       a running program\n"
                               "  malloscope report r.mscope --by function --filter 'json|xml'\n"
                               "  malloscope report r.mscope --json -n 0 | jq '.rows[0]'";

/* Machine output */

static size_t rows_shown(const struct report *report) {
    return report->limit && report->limit < report->rows.count ? report->limit : report->rows.count;
}

static void print_json(const struct report *report) {
    struct json json;
    json_start(&json, stdout, true);
    json_object(&json);
    json_key(&json, "totals");
    machine_output_write_totals(&json, report->loaded.model);
    json_key(&json, "health");
    machine_output_write_health(&json, report->loaded.model);
    json_key(&json, "heaps");
    machine_output_write_heaps(&json, report->loaded.model);
    if (report->filter) {
        json_key(&json, "matched");
        json_object(&json);
        machine_output_write_figures(&json, &report->rows.sum);
        machine_output_write_trust(&json, &report->rows.sum, report->loaded.model->exact);
        json_object_end(&json);
    }
    json_key(&json, "rows");
    json_array(&json);
    for (size_t i = 0; i < rows_shown(report); i++) machine_output_write_row(&json, &report->rows.rows[i]);
    json_array_end(&json);
    json_object_end(&json);
    putchar('\n');
}

static void print_csv(const struct report *report) {
    bool threads = report->by == BY_THREAD;
    machine_output_write_csv_header(stdout, threads);
    for (size_t i = 0; i < rows_shown(report); i++)
        machine_output_write_csv_row(stdout, &report->rows.rows[i], threads, report->loaded.model);
}

/* The table */

static char *bytes_cell(double bytes, bool narrow) {
    return memory_copy_text(narrow ? units_bytes_short(bytes).text : units_bytes(bytes).text);
}

/* A figure that is known for certain has ±0. Without a figure there is nothing to be said. */
static char *error_cell(struct estimate estimate) {
    if (!(estimate.value > 0)) return NULL;
    char *text = estimate_text_share(estimate);
    return text ? text : memory_format_text("%s%s", terminal_glyphs()->plus_minus, units_percent(0).text);
}

/* The last number is the rank (sheet.h). Several rows of one site differ in heap and type alone, so on narrow
 * terminals these two columns are the last to go. */
static void add_stack_columns(struct sheet *sheet, bool exact) {
    const char *error = terminal_glyphs()->plus_minus;
    sheet_add_column(sheet, "LIVE", 0);
    if (!exact) sheet_add_column(sheet, error, 3);
    sheet_add_column(sheet, "PEAK", 4);
    if (!exact) sheet_add_column(sheet, error, 9);
    sheet_add_column(sheet, "TOTAL", 5);
    if (!exact) sheet_add_column(sheet, error, 10);
    sheet_add_column(sheet, "COUNT", 7);
    if (!exact) sheet_add_column(sheet, error, 11);
    sheet_add_column(sheet, "TEMP", 8);
    sheet_add_word_column(sheet, "HEAP", 2);
    sheet_add_word_column(sheet, "TYPE", 1);
    sheet_add_word_column(sheet, "SCOPE", 6);
}

static void add_stack_row(
    struct sheet *sheet, const struct view_row *row, const struct report *report, bool narrow) {
    bool exact = report->loaded.model->exact;
    const struct figures *figures = &row->figures;
    struct sheet_row *cells = sheet_add_row(sheet);
    size_t n = 0;
    cells->cells[n++] = bytes_cell(figures->live_bytes.value, narrow);
    if (!exact) cells->cells[n++] = error_cell(figures->live_bytes);
    cells->cells[n++] = bytes_cell(figures->at_peak_bytes.value, narrow);
    if (!exact) cells->cells[n++] = error_cell(figures->at_peak_bytes);
    cells->cells[n++] = bytes_cell(figures->total_bytes.value, narrow);
    if (!exact) cells->cells[n++] = error_cell(figures->total_bytes);
    cells->cells[n++] = memory_copy_text(units_count(figures->total_objects.value).text);
    if (!exact) cells->cells[n++] = error_cell(figures->total_objects);
    double all = figures->total_objects.value;
    cells->cells[n++] = memory_copy_text(units_percent(all > 0 ? figures->temporary_objects / all : 0).text);
    /* NULL: nothing to tell. A column in which all cells are NULL is not shown. */
    bool tells_heap = model_has_heaps(report->loaded.model) && report->by != BY_HEAP;
    cells->cells[n++] = tells_heap ? row_text_heap(row) : NULL;
    cells->cells[n++] = report->by != BY_TYPE ? row_text_type(row, report->verbose) : NULL;
    cells->cells[n++] = report->by != BY_SCOPE ? row_text_scope(row) : NULL;
    cells->last = row_text(row, (enum view_by)report->by, report->verbose);
}

static void add_thread_row(struct sheet *sheet, const struct view_row *row, bool narrow) {
    struct sheet_row *cells = sheet_add_row(sheet);
    cells->cells[0] = bytes_cell(row->figures.total_bytes.value, narrow);
    cells->cells[1] = memory_copy_text(units_count((double)row->figures.samples).text);
    cells->last = site_text(row->function, NULL, 0, NULL, true);
}

static const char *last_title(int by) {
    static const char *const titles[] = {"SITE", "FUNCTION", "LINE", "FILE", "MODULE", "THREAD", "HEAP",
        "TYPE", "SCOPE", "SITE OF THE STACK", "PROCESS"};
    return titles[by];
}

static void print_remainder(const struct report *report) {
    static const char *const words[] = {
        "live", "at the peak", "allocated", "allocation", "temporary allocation"};
    size_t shown = rows_shown(report);
    if (shown == report->rows.count) return;
    enum view_sort sort = report->by == BY_THREAD ? SORT_TOTAL : (enum view_sort)report->sort;
    struct estimate rest = {0};
    for (size_t i = shown; i < report->rows.count; i++)
        rest = estimate_add(rest, view_sort_estimate(&report->rows.rows[i].figures, sort));
    printf("%s %s more with ", terminal_glyphs()->ellipsis,
        units_count((double)(report->rows.count - shown)).text);
    if (sort == SORT_ALLOCS || sort == SORT_TEMPORARY)
        fputs(units_counted(rest.value, words[sort]).text, stdout);
    else
        printf("%s %s", units_bytes(rest.value).text, words[sort]);
    cleanup_text char *error = estimate_text_share(rest);
    if (error) printf(" (%s)", error);
    puts("; -n 0 shows all");
}

static void print_table(const struct report *report) {
    struct terminal terminal = terminal_of(stdout);
    const struct model *model = report->loaded.model;
    bool narrow = terminal.width && terminal.width < 100;
    struct sheet sheet;
    sheet_start(&sheet, terminal, last_title(report->by));
    if (report->by == BY_THREAD) {
        sheet_add_column(&sheet, "ALLOCATED, EXACT", 0);
        sheet_add_column(&sheet, "SAMPLES", 1);
    } else {
        add_stack_columns(&sheet, model->exact);
    }
    for (size_t i = 0; i < rows_shown(report); i++) {
        if (report->by == BY_THREAD)
            add_thread_row(&sheet, &report->rows.rows[i], narrow);
        else
            add_stack_row(&sheet, &report->rows.rows[i], report, narrow);
    }
    struct stack_style style = {report->raw_site, report->verbose, "        "};
    sheet_fit(&sheet);
    sheet_print_titles(&sheet);
    for (size_t i = 0; i < sheet.row_count; i++) {
        sheet_print_row(&sheet, i);
        if (report->verbose && report->rows.rows[i].largest)
            stack_text_print(&report->loaded, report->rows.rows[i].largest, &style, &terminal);
    }
    sheet_free(&sheet);
    print_remainder(report);
}

static void print_for_people(const struct report *report) {
    const struct model *model = report->loaded.model;
    summary_print(stdout, model);
    notes_print(stdout, model, (enum view_sort)report->sort);
    advice_print(stdout, &report->loaded, (enum view_sort)report->sort);
    if (report->by != BY_THREAD && !report->sort_given && report->sort != SORT_LIVE)
        notes_print_order(stdout, "the largest at the heap's peak first");
    if (report->filter && report->by != BY_THREAD) {
        const struct figures *sum = &report->rows.sum, *all = &model->totals.sum;
        cleanup_text char *live = estimate_text_bytes(sum->live_bytes);
        cleanup_text char *all_live = estimate_text_bytes(all->live_bytes);
        cleanup_text char *total = estimate_text_bytes(sum->total_bytes);
        cleanup_text char *all_total = estimate_text_bytes(all->total_bytes);
        cleanup_text char *text =
            memory_format_text("'%s' matches %s of %s live and %s of %s allocated in total", report->filter,
                live, all_live, total, all_total);
        text_print_titled(stdout, "filter:", text);
        notes_print_samples(
            stdout, model, &report->rows.sum, "what matches rest", (enum view_sort)report->sort);
    }
    putchar('\n');
    if (report->rows.count)
        print_table(report);
    else if (report->filter)
        puts("nothing matches the filter");
    else if (model->exact)
        puts(model->levels_only ? "there is no attribution: 'malloscope timeline' shows its size over time"
                                : "nothing was allocated");
    else
        puts("no allocation was sampled");
}

int command_report(int argc, char **argv) {
    struct report report = {.limit = 20, .page.options.nodes_max = PAGE_NODES};
    struct option_rule rules[] = {
        {'b', "by", OPTION_CHOICE, &report.by, "WHAT",
            .help = "what makes a line (default site):", .choices = shared_by_names},
        {'s', "sort", OPTION_CHOICE, &report.sort, "KEY", .ret_given = &report.sort_given,
            .help = "largest first by (default live, or peak if the program has\nended and nearly nothing is "
                    "live):",
            .choices = shared_sort_names},
        {'n', "limit", OPTION_COUNT, &report.limit, "N", .help = "show N lines (default 20; 0 = all)"},
        FILTER_RULE(report.filter),
        {0, "json", OPTION_ON, &report.json, NULL, .help = "one JSON object: totals, health, rows"},
        {0, "csv", OPTION_ON, &report.csv, NULL, .help = "comma-separated lines with a header"},
        {0, "html", OPTION_ON, &report.html, NULL,
            .help = "the page of 'malloscope flame', for which these are:"},
        OUTPUT_RULES(report.page.output),
        PAGE_RULES(report.page),
        {0, "raw-site", OPTION_ON, &report.raw_site, NULL,
            .help = "do not look behind operator new, containers, strdup, ..."},
        {'v', "verbose", OPTION_ON, &report.verbose, NULL,
            .help = "names in full, and under each line the stack that\ncontributes most"},
        LOAD_RULES(report.load_options),
    };
    struct command_line line = {.name = "report",
        .usage = "malloscope report [OPTION]... FILE|PID...",
        OPTIONS_TABLE(rules, about, examples),
        ARGUMENTS_SOURCES};
    int code;
    if (!options_begin(&line, argc, argv, &code)) return code;
    if (report.json + report.csv + report.html > 1)
        return message_error(
            PROBLEM_USAGE, "choose one of them", "--json, --csv and --html exclude each other");
    if (report.page.output.path && !report.html)
        return message_error(PROBLEM_USAGE, "add --html, or redirect the output", "-o is for the page");
    if (report.html && report.by != BY_SITE)
        return message_error(PROBLEM_USAGE, "leave out --by", "the page of --html groups by site");

    code = load_sources(line.arguments, line.argument_count, &report.load_options, &report.loaded);
    if (code) return code;
    /* The order depends on the recording only where people read it: scripts always get the same one. */
    if (!report.sort_given && !report.json && !report.csv)
        report.sort = summary_default_sort(report.loaded.model);
    if (report.html) {
        report.page.options.sort = (enum view_sort)report.sort;
        report.page.options.filter = report.filter;
        report.page.options.raw_sites = report.raw_site;
        report.page.options.sysroot = report.load_options.sysroot;
        code = page_write(&report.loaded, &report.page, line.arguments, line.argument_count);
        int end = load_finish(&report.loaded);
        return code ? code : end;
    }
    struct problem problem = {0};
    struct view_query query = {
        (enum view_by)report.by, (enum view_sort)report.sort, report.filter, report.raw_site};
    struct progress progress;
    progress_start(&progress, PROGRESS_GROUPING);
    int r = view_rows_query(report.loaded.model, report.loaded.resolver, &query, &report.rows, &problem);
    progress_end(&progress);
    if (r < 0) {
        load_free(&report.loaded);
        return message_problem(&problem);
    }
    if (report.json)
        print_json(&report);
    else if (report.csv)
        print_csv(&report);
    else
        print_for_people(&report);
    view_rows_free(&report.rows);
    return load_finish(&report.loaded);
}
