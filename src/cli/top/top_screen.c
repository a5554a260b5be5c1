#include "cli/top/top_screen.h"
#include "base/memory.h"
#include "cli/terminal/plot.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "cli/words/estimate_text.h"
#include "cli/words/site_text.h"
#include "cli/words/stack_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct terminal plain = {.bold = "", .dim = "", .alarm = "", .plain = ""};

/* Lines */

/* The beginning of a clean text, at most `width` columns of it. */
static char *cut_text(const char *text, size_t width) {
    char *cut = memory_copy_text(text);
    size_t length = strlen(cut);
    while (text_width(cut) > width) {
        do length--;
        while (length && ((unsigned char)cut[length] & 0xc0) == 0x80);
        cut[length] = 0;
    }
    return cut;
}

/* Adds a line, cut to the width of the screen. Frees `text`. Lines that do not fit on the screen are dropped. */
static struct top_screen_line *add(struct top_screen *screen, enum top_line_style style, char *text) {
    static struct top_screen_line beyond;
    if (screen->used == screen->height) {
        free(text);
        return &beyond;
    }
    struct top_screen_line *line = &screen->lines[screen->used++];
    *line = (struct top_screen_line){.text = cut_text(text, screen->width), .style = style};
    free(text);
    return line;
}

static struct top_screen_line *add_format(struct top_screen *screen, enum top_line_style style,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

static struct top_screen_line *add_format(
    struct top_screen *screen, enum top_line_style style, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = memory_format_arguments(format, arguments);
    va_end(arguments);
    return add(screen, style, text);
}

/* A line with one text at the left and one at the right. If there is no room for both, the left one is cut. */
static void add_ends(
    struct top_screen *screen, enum top_line_style style, const char *left, const char *right) {
    size_t right_width = text_width(right),
           room = screen->width > right_width + 1 ? screen->width - right_width - 1 : 0;
    cleanup_text char *cut = cut_text(left, room);
    size_t blanks =
        screen->width - text_width(cut) > right_width ? screen->width - text_width(cut) - right_width : 0;
    add_format(screen, style, "%s%*s%s", cut, (int)blanks, "", right);
}

void top_screen_free(struct top_screen *screen) {
    for (size_t i = 0; i < screen->height; i++) free(screen->lines[i].text);
    free(screen->lines);
    *screen = (struct top_screen){0};
}

/* Figures */

/* A time in at most six columns: 0.3s, 12s, 2m05s, 3h20m, 12d; nothing for times < 0. */
static struct unit_text age_text(double seconds) {
    struct unit_text result;
    unsigned long whole = (unsigned long)seconds;
    if (seconds < 0)
        result.text[0] = 0;
    else if (seconds < 9.95)
        snprintf(result.text, sizeof result.text, "%.1fs", seconds);
    else if (seconds < 100)
        snprintf(result.text, sizeof result.text, "%.0fs", seconds);
    else if (whole < 6000)
        snprintf(result.text, sizeof result.text, "%lum%02lus", whole / 60, whole % 60);
    else if (whole < 100 * 3600)
        snprintf(result.text, sizeof result.text, "%luh%02lum", whole / 3600, whole / 60 % 60);
    else
        snprintf(result.text, sizeof result.text, "%lud", whole / 86400);
    return result;
}

/* A number of bytes with its sign; nothing for 0. */
static struct unit_text change_text(double change) {
    struct unit_text result = {""};
    if (fabs(change) >= 0.5)
        snprintf(result.text, sizeof result.text, "%s%.20s", change > 0 ? "+" : "-",
            units_bytes_short(fabs(change)).text);
    return result;
}

static struct unit_text amount_text(const struct top_state *state, double bytes) {
    return state->base_time < 0 ? units_bytes_short(bytes) : change_text(bytes);
}

static struct unit_text share_text(const struct top_amounts *amounts) {
    struct unit_text nothing = {""};
    if (amounts->allocations <= 0) return nothing;
    double share = amounts->temporary / amounts->allocations;
    return units_percent(share > 1 ? 1 : share < 0 ? 0 : share);
}

/* The head: which processes are shown, and their totals */

static void add_title(struct top_screen *screen, const struct top_state *state) {
    const struct top_process *only = state->shown                ? top_find_process(state, state->shown)
                                     : state->process_count == 1 ? state->processes[0]
                                                                 : NULL;
    size_t running = 0;
    for (size_t i = 0; i < state->process_count; i++) running += state->processes[i]->running;
    cleanup_text char *what =
        only ? memory_format_text("%s (%d), %s %s", only->name, only->pid,
                   only->running ? "running for" : "ended after", units_seconds(only->duration).text)
             : memory_format_text("%zu of %zu processes running", running, state->process_count);
    cleanup_text char *left = memory_format_text(" malloscope top  %s", what);
    cleanup_text char *since =
        state->base_time < 0
            ? memory_copy_text("")
            : memory_format_text("  from now on: %s",
                  age_text(state->times[state->reading % TOP_LEVELS] - state->base_time).text);
    cleanup_text char *pace = state->interval > 1.05
                                  ? memory_format_text("  every %s", age_text(state->interval).text)
                                  : memory_copy_text("");
    bool incomplete = false;
    for (size_t i = 0; i < state->process_count; i++)
        incomplete |= state->processes[i]->is_incomplete && top_counts(state, state->processes[i]);
    cleanup_text char *right = memory_format_text(
        "%s%s%s%s ", since, pace, incomplete ? "  INCOMPLETE" : "", state->frozen ? "  FROZEN" : "");
    add_ends(screen, LINE_BAR, left, right);
}

/* Appends the piece to the text if it fits into `width`. */
static void append(char **text, size_t width, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void append(char **text, size_t width, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *piece = memory_format_arguments(format, arguments);
    va_end(arguments);
    if (text_width(*text) + 3 + text_width(piece) <= width) {
        char *longer = memory_format_text("%s   %s", *text, piece);
        free(*text);
        *text = longer;
    }
    free(piece);
}

static void add_totals(struct top_screen *screen, const struct top_state *state) {
    struct top_amounts sum = {0};
    struct estimate live = {0}, peak = {0};
    double growth = 0;
    size_t counted = 0;
    for (size_t i = 0; i < state->process_count; i++) {
        const struct top_process *process = state->processes[i];
        if (!top_counts(state, process)) continue;
        sum.live += process->now.live - process->base.live;
        sum.total += process->now.total - process->base.total;
        sum.allocations += process->now.allocations - process->base.allocations;
        sum.temporary += process->now.temporary - process->base.temporary;
        live = counted++ ? estimate_add(live, process->live) : process->live;
        growth += top_growth_of_process(state, process);
        peak = estimate_add(peak, process->peak);
    }
    double error = estimate_error(live);
    cleanup_text char *bar = error > 0 && live.value > 0
                                 ? memory_format_text(" %s%s", terminal_glyphs()->plus_minus,
                                       units_percent(error / live.value).text)
                                 : memory_copy_text("");
    cleanup_text char *since =
        state->base_time < 0 ? memory_copy_text("")
                             : memory_format_text(" (%s)", sum.live == 0 ? "+0" : change_text(sum.live).text);
    struct unit_text change = change_text(growth);
    cleanup_text char *front = memory_format_text(" live %s%s%s", units_bytes(live.value).text, bar, since);
    char *text = memory_copy_text(front);
    append(&text, screen->width, "%s/s", change.text[0] ? change.text : "+0");
    cleanup_text char *peak_error = estimate_text_share(peak);
    append(&text, screen->width, "%s %s%s%s", counted > 1 ? "peaks" : "peak", units_bytes(peak.value).text,
        peak_error ? " " : "", peak_error ? peak_error : "");
    append(&text, screen->width, "total %s%s", state->base_time < 0 ? "" : "+", units_bytes(sum.total).text);
    if (sum.allocations > 0) append(&text, screen->width, "temporary %s", share_text(&sum).text);
    struct top_screen_line *line = add(screen, LINE_PLAIN, text);
    if (growth >= 0.5) {
        line->alarm_from = text_width(front) + 3;
        line->alarm_length = strlen(change.text) + 2;
    }
}

/* The course of the live bytes. The scale goes from the lowest to the highest value that is shown, so that small
 * changes of a large heap can be seen. The two figures at the ends are these two values. */
static void add_sparkline(struct top_screen *screen, const struct top_state *state) {
    enum { ENDS = 40 };
    size_t room = screen->width > ENDS ? screen->width - ENDS : 1;
    size_t first = top_first_level(state);
    if (state->reading - first >= room) first = state->reading - room + 1;
    double low = top_level(state, state->reading), high = low;
    for (size_t i = first; i < state->reading; i++) {
        double level = top_level(state, i);
        if (level < low) low = level;
        if (level > high) high = level;
    }
    char *bars = memory_allocate(4 * room + 1),
         *end = bars; /* a character of plot_level has at most 3 bytes */
    for (size_t i = first; i <= state->reading; i++) {
        double share = high > low ? (top_level(state, i) - low) / (high - low) : 0.5;
        end = stpcpy(end, plot_level(share > 0.125 ? share : 0.125));
    }
    double seconds = state->times[state->reading % TOP_LEVELS] - state->times[first % TOP_LEVELS];
    add_format(screen, LINE_PLAIN, " %s %s %s   last %s", units_bytes(low).text, bars, units_bytes(high).text,
        age_text(seconds).text);
    free(bars);
}

/* The processes */

static void add_processes(struct top_screen *screen, const struct top_state *state) {
    if (state->process_count < 2) return;
    size_t room = screen->height / 4 > 3 ? screen->height / 4 : 3, shown = 0;
    size_t skip = 0; /* scrolls the list so that the chosen process is visible */
    for (size_t i = room; i < state->process_count; i++)
        if (state->processes[i]->number == state->shown) skip = i - room + 1;
    add_format(screen, LINE_BAR, "%8s %8s %9s %8s %8s %8s  PROGRAM", "PID",
        state->base_time < 0 ? "LIVE" : "+LIVE", "GROWTH/s", "PEAK",
        state->base_time < 0 ? "TOTAL" : "+TOTAL", "TIME");
    for (size_t i = skip; i < state->process_count && shown < room; i++, shown++) {
        const struct top_process *process = state->processes[i];
        struct unit_text change = change_text(top_growth_of_process(state, process));
        int indent = (int)(2 * (process->depth < 10 ? process->depth : 10));
        struct top_screen_line *line = add_format(screen,
            process->number == state->shown ? LINE_CURSOR
            : process->running              ? LINE_PLAIN
                                            : LINE_DIM,
            "%8d %8s %9s %8s %8s %8s  %*s%s%s%s", process->pid,
            amount_text(state, process->now.live - process->base.live).text, change.text,
            units_bytes_short(process->peak.value).text,
            amount_text(state, process->now.total - process->base.total).text,
            age_text(process->duration).text, indent ? indent - 2 : 0, "",
            !indent                      ? ""
            : terminal_glyphs()->unicode ? "└ "
                                         : "` ",
            process->name, process->running ? "" : " (ended)");
        if (change.text[0] == '+') {
            line->alarm_from = 18;
            line->alarm_length = 9;
        }
    }
    if (skip + shown < state->process_count)
        add_format(screen, LINE_DIM, "%8s %zu more: p shows each", terminal_glyphs()->ellipsis,
            state->process_count - skip - shown);
}

/* The sites */

/* Which columns are shown. On narrow screens there are fewer, so that names have room. */
struct columns {
    bool errors, total, temporary, oldest;
};

static struct columns columns_of(const struct top_screen *screen, const struct top_state *state) {
    struct columns columns = {
        .total = screen->width >= 50, .temporary = screen->width >= 60, .oldest = screen->width >= 70};
    for (size_t i = 0; i < state->process_count && screen->width >= 96 && state->base_time < 0; i++)
        if (estimate_error(state->processes[i]->live) > 0) columns.errors = true;
    return columns;
}

struct figures_text {
    const char *live, *error, *growth, *total, *temporary, *oldest;
};

/* Right-aligned in `width` columns. printf pads by bytes, and some characters have several. */
static char *cell(const char *text, int width) {
    return memory_format_text("%*s ", width + (int)(strlen(text) - text_width(text)), text);
}

static char *join_figures(const struct columns *columns, const struct figures_text *texts) {
    cleanup_text char *live = cell(texts->live, 8);
    cleanup_text char *error = columns->errors ? cell(texts->error, 6) : memory_copy_text("");
    cleanup_text char *growth = cell(texts->growth, 9);
    cleanup_text char *total = columns->total ? cell(texts->total, 8) : memory_copy_text("");
    cleanup_text char *temporary = columns->temporary ? cell(texts->temporary, 5) : memory_copy_text("");
    cleanup_text char *oldest = columns->oldest ? cell(texts->oldest, 7) : memory_copy_text("");
    return memory_format_text("%s%s%s%s%s%s ", live, error, growth, total, temporary, oldest);
}

static struct unit_text title(const struct top_state *state, enum top_sort sort) {
    static const char *const names[] = {"LIVE", "GROWTH/s", "TOTAL", "TEMP", "OLDEST"};
    struct unit_text text;
    bool changes = state->base_time >= 0 && (sort == TOP_LIVE || sort == TOP_TOTAL);
    snprintf(text.text, sizeof text.text, "%s%s%s", changes ? "+" : "", names[sort],
        state->sort != sort          ? ""
        : terminal_glyphs()->unicode ? "▼"
                                     : "v");
    return text;
}

static void add_site_titles(struct top_screen *screen, const struct top_state *state) {
    struct columns columns = columns_of(screen, state);
    struct unit_text live = title(state, TOP_LIVE), growth = title(state, TOP_GROWTH),
                     total = title(state, TOP_TOTAL), temporary = title(state, TOP_TEMPORARY),
                     oldest = title(state, TOP_OLDEST);
    struct figures_text texts = {
        live.text, terminal_glyphs()->plus_minus, growth.text, total.text, temporary.text, oldest.text};
    cleanup_text char *figures = join_figures(&columns, &texts);
    cleanup_text char *left = memory_format_text("%sSITE", figures);
    cleanup_text char *filter = state->filter ? text_clean(state->filter) : NULL;
    cleanup_text char *right = filter ? memory_format_text("filter: %s ", filter) : memory_copy_text("");
    add_ends(screen, LINE_BAR, left, right);
}

static struct place_text place_of(const struct top_site *site) {
    struct place_text text = site_text(site->function, site->file, site->line, site->module, false);
    bool has_heap = site->heap && strcmp(site->heap, HEAP_MALLOC) != 0;
    if (!site->type && !has_heap) return text;
    cleanup_text char *heap = has_heap ? text_clean(site->heap) : NULL,
                      *type = site->type ? text_clean(site->type) : NULL;
    char *longer = memory_format_text(
        "%s [%s%s%s]", text.name, heap ? heap : "", heap && type ? ", " : "", type ? type : "");
    free(text.name);
    text.name = longer;
    return text;
}

static void add_site(
    struct top_screen *screen, const struct top_state *state, const struct top_row *row, bool cursor) {
    struct columns columns = columns_of(screen, state);
    double error = row->live.value > 0 ? estimate_error(row->live) / row->live.value : 0;
    cleanup_text char *bar =
        error > 0 ? memory_format_text("%s%s", terminal_glyphs()->plus_minus, units_percent(error).text)
                  : memory_copy_text("");
    struct unit_text live = amount_text(state, row->amounts.live), change = change_text(row->growth),
                     total = amount_text(state, row->amounts.total), temporary = share_text(&row->amounts),
                     oldest = age_text(row->age);
    struct figures_text texts = {live.text, bar, change.text, total.text, temporary.text, oldest.text};
    cleanup_text char *figures = join_figures(&columns, &texts);
    size_t used = text_width(figures), room = screen->width > used ? screen->width - used : 1;
    struct place_text place = place_of(row->site);
    cleanup_text char *name = place_text_fit(place, room, &plain);
    place_text_free(&place);
    struct top_screen_line *line =
        add_format(screen, cursor ? LINE_CURSOR : LINE_PLAIN, "%s%s", figures, name);
    if (change.text[0] == '+') {
        line->alarm_from = columns.errors ? 16 : 9;
        line->alarm_length = 9;
    }
}

static void add_frame(struct top_screen *screen, const struct frame_text *frame, bool cursor) {
    enum { INDENT = 12 };
    cleanup_text char *times = frame->repeats > 1
                                   ? memory_format_text("  %s %zu", terminal_glyphs()->times, frame->repeats)
                                   : memory_copy_text("");
    size_t used = INDENT + text_width(times);
    cleanup_text char *text =
        place_text_fit(frame->text, screen->width > used + 1 ? screen->width - used : 1, &plain);
    add_format(screen, cursor ? LINE_CURSOR : LINE_DIM, "%*s%s%s", INDENT, "", text, times);
}

static void scroll(struct top_state *state, size_t page) {
    size_t cursor = top_cursor_line(state), lines = top_line_count(state);
    state->page = page ? page : 1;
    if (state->first_line + state->page > lines)
        state->first_line = lines > state->page ? lines - state->page : 0;
    if (cursor < state->first_line) state->first_line = cursor;
    if (cursor >= state->first_line + state->page) state->first_line = cursor - state->page + 1;
}

static const char *empty_text(const struct top_state *state) {
    if (!state->process_count)
        return "waiting for a program that is recorded; 'malloscope run -- PROGRAM' starts one";
    if (state->filter) return "nothing matches the filter; / changes it";
    if (state->base_time >= 0) return "nothing was allocated or freed since the baseline; B leaves it";
    for (size_t i = 0; i < state->process_count; i++)
        if (state->processes[i]->levels_only && top_counts(state, state->processes[i]))
            return "only the size of the memory is recorded, no allocations";
    return "nothing was recorded yet";
}

static void add_sites(struct top_screen *screen, struct top_state *state, size_t bottom) {
    add_site_titles(screen, state);
    size_t page = screen->height > screen->used + bottom ? screen->height - screen->used - bottom : 0;
    scroll(state, page);
    size_t cursor = top_cursor_line(state), line = 0, end = state->first_line + page;
    if (!state->row_count && page) add_format(screen, LINE_DIM, "  %s", empty_text(state));
    for (size_t i = 0; i < state->row_count && line < end; i++) {
        const struct top_row *row = &state->rows[i];
        if (line >= state->first_line) add_site(screen, state, row, line == cursor);
        line++;
        for (size_t k = 0; row->site->expanded && k < row->site->stack_count && line < end; k++, line++)
            if (line >= state->first_line) add_frame(screen, &row->site->stack[k], line == cursor);
    }
}

/* The foot, and the help in place of the table */

static void add_help(struct top_screen *screen) {
    static const char *const lines[] = {
        "",
        " s S        sort by the next or the former column; or at once:",
        " l g t m o  by live, growth, total, temporary, oldest",
        " /          show sites with a stack in which a name matches (regular expression)",
        " Enter      open or close the stack with most live bytes of a site",
        " Space f    freeze, and go on",
        " b          baseline: LIVE and TOTAL count from now on; B leaves it",
        " p P        show the next or the former process alone, then all again",
        " j k, arrows, PgUp PgDn Home End   move",
        " q          quit",
        "",
        " GROWTH/s   of live bytes, over the last 5 readings",
        " TEMP       share of the allocations that were freed within a millisecond",
        " OLDEST     age of the oldest block that is live",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) add_format(screen, LINE_PLAIN, "%s", lines[i]);
}

static void add_foot(struct top_screen *screen, const struct top_state *state) {
    while (screen->used + 1 + (state->note != NULL) < screen->height)
        add_format(screen, LINE_PLAIN, "%s", "");
    if (state->note) add_format(screen, LINE_NOTE, " %s", state->note);
    if (state->editing) {
        cleanup_text char *typed = text_clean(state->typed);
        add_format(screen, LINE_BAR, " filter: %s_   Enter takes it, Esc leaves it", typed);
    } else if (state->helps) {
        add_ends(screen, LINE_BAR, " any key goes back", "");
    } else {
        add_ends(screen, LINE_BAR,
            state->process_count > 1
                ? " q quit  ? help  s sort  / filter  Enter stack  f freeze  b baseline  p process"
                : " q quit  ? help  s sort  / filter  Enter stack  Space freeze  b baseline",
            "");
    }
}

struct top_screen top_compose(struct top_state *state, size_t width, size_t height) {
    struct top_screen screen = {
        .lines = memory_allocate((height + 1) * sizeof *screen.lines), .height = height, .width = width};
    add_title(&screen, state);
    add_totals(&screen, state);
    add_sparkline(&screen, state);
    if (state->helps) {
        add_help(&screen);
    } else {
        add_processes(&screen, state);
        add_sites(&screen, state, 1 + (state->note != NULL));
    }
    add_foot(&screen, state);
    return screen;
}
