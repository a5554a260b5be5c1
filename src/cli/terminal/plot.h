/* A plot of the heap over time, in lines of text:
 *
 *                     ▼ peak 40.0 MiB at 412 ms
 *       40 MiB ┤      ██▆
 *       20 MiB ┤   ▄▆████▅▅▅▅▅▅▅
 *              └┬───────┬───────┬
 *               0 s     1 s     2 s
 *
 * The top of a column is the most that was live at any moment of the time it stands for, so that a short peak
 * is seen however narrow its column is. */
#ifndef MALLOSCOPE_CLI_TERMINAL_PLOT_H
#define MALLOSCOPE_CLI_TERMINAL_PLOT_H

#include "model/model.h"

#include <stdio.h>

struct plot {
    const struct model_moment *moments; /* in order, without gaps */
    size_t count;
    double span;         /* seconds */
    double peak;         /* bytes */
    double peak_seconds; /* when */
};

/* At least 30 columns and 6 lines are taken, whatever is given. */
void plot_print(FILE *out, const struct plot *plot, size_t width, size_t height);

/* What stands for `share` (0 to 1) of a character's height: one column; blank for 0. */
const char *plot_level(double share);

/* The largest of the moments that overlap [from, to) seconds; 0 if none does. */
double plot_most(const struct plot *plot, double from, double to);

#endif
