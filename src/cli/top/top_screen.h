/* The screen of `malloscope top` as lines of text. These files decide what is on the screen; cli/command/top.c
 * sends it to the terminal. */
#ifndef MALLOSCOPE_CLI_TOP_TOP_SCREEN_H
#define MALLOSCOPE_CLI_TOP_TOP_SCREEN_H

#include "cli/top/top_state.h"

enum top_line_style { LINE_PLAIN, LINE_BAR, LINE_CURSOR, LINE_DIM, LINE_NOTE };

struct top_screen_line {
    char *text; /* clean, and no wider than the screen; NULL = an empty line */
    enum top_line_style style;
    size_t alarm_from, alarm_length; /* columns that are highlighted; length 0 = none */
};

struct top_screen {
    struct top_screen_line *lines;
    size_t height, width;
    size_t used;
};

/* Makes the screen of the state. It sets state->page to the number of rows that fit, and scrolls so that the cursor
 * is visible. The caller frees the screen with top_screen_free. */
struct top_screen top_compose(struct top_state *state, size_t width, size_t height);
void top_screen_free(struct top_screen *screen);

#endif
