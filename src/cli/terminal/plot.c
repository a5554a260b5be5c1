#include "cli/terminal/plot.h"
#include "base/memory.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_WIDTH 9  /* columns of the sizes at the left: "1023 MiB " */
#define TICK_WIDTH  12 /* least number of columns between two times */

enum { LEVELS = 8 };

const char *plot_level(double share) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
    double level = ceil(share * LEVELS - 1e-9); /* rounded up: a small share is not shown as none */
    size_t index = level < 0 ? 0 : level > LEVELS ? LEVELS : (size_t)level;
    return terminal_glyphs()->unicode ? blocks[index] : letters[index];
}

double plot_most(const struct plot *plot, double from, double to) {
    double most = 0;
    for (size_t i = 0; i < plot->count; i++) {
        const struct model_moment *moment = &plot->moments[i];
        double start = moment->seconds - moment->width / 2, end = moment->seconds + moment->width / 2;
        if (start < to && end > from && moment->live_max > most) most = moment->live_max;
    }
    return most;
}

/* The axes */

struct axes {
    size_t columns, rows;
    double top;       /* bytes at the upper edge */
    size_t size_rows; /* rows from one labelled size to the next */
    double size_step; /* bytes from one labelled size to the next */
    double time_step; /* seconds from one labelled time to the next */
};

/* At most four sizes get a label. The step between them is a power of two of bytes, and a whole number of rows. */
static void choose_sizes(struct axes *axes, double peak, size_t rows) {
    axes->size_step = 1;
    while (peak > 4 * axes->size_step) axes->size_step *= 2;
    size_t steps = (size_t)ceil(peak / axes->size_step);
    if (steps < 1) steps = 1;
    axes->size_rows = rows / steps > 1 ? rows / steps : 1;
    axes->rows = axes->size_rows * steps;
    axes->top = axes->size_step * (double)steps;
}

static void choose_times(struct axes *axes, double span) {
    static const double steps[] = {
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86400};
    double least = span * TICK_WIDTH / (double)axes->columns;
    double decimal = 1e-6;
    while (decimal < 1 && least > 5 * decimal) decimal *= 10;
    if (least <= 5 * decimal && decimal < 1) {
        axes->time_step = least <= decimal ? decimal : least <= 2 * decimal ? 2 * decimal : 5 * decimal;
        return;
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] >= least) {
            axes->time_step = steps[i];
            return;
        }
    axes->time_step = 86400 * ceil(least / 86400);
}

static char *time_label(double seconds, double span) {
    if (span < 1e-3) return memory_format_text("%g %s", round(seconds * 1e6), terminal_glyphs()->micro);
    if (span < 1) return memory_format_text("%g ms", round(seconds * 1e6) / 1e3);
    if (span < 180) return memory_format_text("%g s", round(seconds * 1e3) / 1e3);
    if (span < 3 * 3600) return memory_format_text("%g min", round(seconds / 0.6) / 100);
    if (span < 4 * 86400) return memory_format_text("%g h", round(seconds / 36) / 100);
    return memory_format_text("%g d", round(seconds / 864) / 100);
}

static size_t column_of(const struct axes *axes, double span, double seconds) {
    double place = span > 0 ? seconds / span * (double)axes->columns : 0;
    return place < 0 ? 0 : place >= (double)axes->columns ? axes->columns - 1 : (size_t)place;
}

/* Drawing, from top to bottom */

static void print_peak(FILE *out, const struct plot *plot, const struct axes *axes) {
    bool unicode = terminal_glyphs()->unicode;
    size_t column = LABEL_WIDTH + 1 + column_of(axes, plot->span, plot->peak_seconds);
    cleanup_text char *words =
        memory_format_text("peak %s at %s", plot->peak, units_seconds(plot->peak_seconds).text);
    const char *mark = unicode ? "▼" : "v";
    size_t length = text_width(words) + 2;
    if (column + length <= LABEL_WIDTH + 1 + axes->columns)
        fprintf(out, "%*s%s %s\n", (int)column, "", mark, words);
    else if (column + 1 >= length)
        fprintf(out, "%*s%s %s\n", (int)(column + 1 - length), "", words, mark);
    else
        fprintf(out, "%s\n", words);
}

static void print_rows(FILE *out, const struct axes *axes, const double *values) {
    for (size_t row = axes->rows; row-- > 0;) {
        bool labelled = (row + 1) % axes->size_rows == 0;
        /* NOLINTNEXTLINE(bugprone-integer-division): the number of the label, rounded down. */
        double size = axes->size_step * (double)((row + 1) / axes->size_rows);
        cleanup_text char *label =
            labelled ? memory_format_text("%s ", units_bytes(size).text) : memory_copy_text("");
        fprintf(out, "%*s%s", LABEL_WIDTH, label,
            terminal_glyphs()->unicode ? (labelled ? "┤" : "│")
            : labelled                 ? "+"
                                       : "|");
        size_t last = axes->columns; /* the line ends at its last column that is not blank */
        while (last > 0 && values[last - 1] / axes->top * (double)axes->rows <= (double)row) last--;
        for (size_t i = 0; i < last; i++)
            fputs(plot_level(values[i] / axes->top * (double)axes->rows - (double)row), out);
        fputc('\n', out);
    }
}

static void print_times(FILE *out, const struct axes *axes, double span) {
    bool unicode = terminal_glyphs()->unicode;
    double per_column = span / (double)axes->columns;
    fprintf(out, "%*s%s", LABEL_WIDTH, "0 B ", unicode ? "└" : "+");
    size_t ticks = 0;
    for (size_t i = 0; i < axes->columns; i++) {
        bool tick = (size_t)round((double)ticks * axes->time_step / per_column) == i;
        ticks += tick;
        fputs(unicode ? (tick ? "┬" : "─") : tick ? "+" : "-", out);
    }
    fprintf(out, "\n%*s", LABEL_WIDTH + 1, "");
    size_t used = 0;
    for (size_t i = 0; i < ticks; i++) {
        size_t place = (size_t)round((double)i * axes->time_step / per_column);
        cleanup_text char *label = time_label((double)i * axes->time_step, span);
        if (place + text_width(label) > axes->columns) break;
        fprintf(out, "%*s%s", (int)(place - used), "", label);
        used = place + text_width(label);
    }
    fputc('\n', out);
}

void plot_print(FILE *out, const struct plot *plot, size_t width, size_t height) {
    enum {
        LEAST_WIDTH = 30,
        LEAST_HEIGHT = 6,
        AROUND = 3 /* lines: one for the peak, two for the time axis */
    };
    if (width < LEAST_WIDTH) width = LEAST_WIDTH;
    if (height < LEAST_HEIGHT) height = LEAST_HEIGHT;
    struct axes axes = {.columns = width - LABEL_WIDTH - 1};
    choose_sizes(&axes, plot_most(plot, -INFINITY, INFINITY), height - AROUND);
    choose_times(&axes, plot->span);
    double *values = memory_allocate(axes.columns * sizeof *values);
    double per_column = plot->span / (double)axes.columns;
    for (size_t i = 0; i < axes.columns; i++)
        values[i] = plot_most(plot, (double)i * per_column, (double)(i + 1) * per_column);
    if (plot->peak) print_peak(out, plot, &axes);
    print_rows(out, &axes, values);
    print_times(out, &axes, plot->span);
    free(values);
}
