/* The plot of a heap over time. */
#include "check.h"
#include "cli/terminal/plot.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>

#define MIB 1048576.0

static char *draw(const struct plot *plot, size_t width, size_t height) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    plot_print(out, plot, width, height);
    fclose(out);
    return text;
}

/* 4 seconds: nothing, 8 MiB with a short peak of 16, nothing, 1 byte. */
static const struct model_moment moments[] = {
    {.seconds = 0.5, .width = 1, .live_max = 0},
    {.seconds = 1.5, .width = 1, .live_max = 16 * MIB, .live_last = 8 * MIB},
    {.seconds = 2.5, .width = 1, .live_max = 8 * MIB},
    {.seconds = 3.5, .width = 1, .live_max = 1},
};
static const struct plot plot = {
    .moments = moments, .count = 4, .span = 4, .peak = "16.0 MiB", .peak_seconds = 1.2};

static void a_plot_has_axes_with_units_and_marks_the_peak(void) {
    char *text = draw(&plot, 50, 7);
    CHECK_TEXT(text, "                      v peak 16.0 MiB at 1.20 s\n"
                     "16.0 MiB +          ##########\n"
                     "12.0 MiB +          ##########\n"
                     "8.00 MiB +          ####################\n"
                     "4.00 MiB +          ####################..........\n"
                     "     0 B ++-------------------+-------------------\n"
                     "          0 s                 2 s\n");
    free(text);
}

static void what_is_small_is_not_nothing_and_no_column_leaves_the_plot(void) {
    setenv("LC_ALL", "C.UTF-8", 1);
    terminal_choose_glyphs();
    CHECK_TEXT(plot_level(0), " ");
    CHECK_TEXT(plot_level(1e-6), "▁");
    CHECK_TEXT(plot_level(0.5), "▄");
    CHECK_TEXT(plot_level(0.51), "▅");
    CHECK_TEXT(plot_level(7), "█");
    CHECK_TEXT(plot_level(-1), " ");
    setenv("LC_ALL", "C", 1);
    terminal_choose_glyphs();
    CHECK_EQUAL(plot_most(&plot, 0.9, 1.1), 16 * MIB);
    CHECK_EQUAL(plot_most(&plot, 0, 1), 0);
    CHECK_EQUAL(plot_most(&plot, 4, 5), 0);
}

/* Times from microseconds to days, sizes from bytes to TiB, narrow and wide: lines never exceed the width. */
static void every_scale_fits(void) {
    for (double span = 1e-5; span < 1e8; span *= 3)
        for (double peak = 1; peak < 1e13; peak *= 7)
            for (size_t width = 30; width < 200; width += 17) {
                struct model_moment one = {.seconds = span / 2, .width = span, .live_max = peak};
                struct plot scaled = {&one, 1, span, "all of it", span};
                char *text = draw(&scaled, width, 20);
                size_t lines = 0;
                for (char *line = text; *line; lines++) {
                    size_t length = strcspn(line, "\n");
                    CHECK(length <= width);
                    line += length + 1;
                }
                CHECK(lines >= 6 && lines <= 20);
                CHECK(strstr(text, "peak ") != NULL);
                free(text);
            }
}

int main(void) {
    setenv("LC_ALL", "C", 1);
    terminal_choose_glyphs();
    a_plot_has_axes_with_units_and_marks_the_peak();
    what_is_small_is_not_nothing_and_no_column_leaves_the_plot();
    every_scale_fits();
    return check_result();
}
