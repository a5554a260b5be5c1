/* A plot of the heap's size over time, in lines of text:
 *
 *                     ▼ peak 40.0 MiB at 412 ms
 *       40 MiB ┤      ██▆
 *       20 MiB ┤   ▄▆████▅▅▅▅▅▅▅
 *              └┬───────┬───────┬
 *               0 s     1 s     2 s
 *
 * A column shows the largest size that the heap had in the time that the column stands for. So a short peak is seen
 * even where a column stands for a long time. */
#ifndef MALLOSCOPE_CLI_TERMINAL_PLOT_H
#define MALLOSCOPE_CLI_TERMINAL_PLOT_H

#include "model/model.h"

#include <stdio.h>

struct plot {
    const struct model_moment *moments; /* sorted by time, without gaps */
    size_t count;
    double span;         /* seconds that the plot shows */
    const char *peak;    /* what the peak was, in words; NULL: it is not marked */
    double peak_seconds; /* when the peak was, since the start */
};

/* Prints the plot in `width` columns and `height` lines, but at least 30 columns and 6 lines. */
void plot_print(FILE *out, const struct plot *plot, size_t width, size_t height);

/* A character, one column wide, that is filled to `share` (0 to 1) of its height; a blank for 0. */
const char *plot_level(double share);

/* The largest live_max of the moments that overlap [from, to) seconds; 0 if none does. */
double plot_most(const struct plot *plot, double from, double to);

#endif
