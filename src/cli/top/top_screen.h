/* The screen of `malloscope top` as lines of text: what is on it is decided here, how it gets to a terminal
 * is not. */
#ifndef MALLOSCOPE_CLI_TOP_TOP_SCREEN_H
#define MALLOSCOPE_CLI_TOP_TOP_SCREEN_H

#include "cli/top/top_state.h"

enum top_line_style { LINE_PLAIN, LINE_BAR, LINE_CURSOR, LINE_DIM, LINE_NOTE };

struct top_screen_line {
    char *text; /* clean, no wider than the screen; NULL = empty */
    enum top_line_style style;
    size_t alarm_from, alarm_length; /* columns that stand out, unless the length is 0 */
};

struct top_screen {
    struct top_screen_line *lines;
    size_t height, width;
    size_t used;
};

/* Notes in the state what a page is, and scrolls so that the cursor is on it. */
struct top_screen top_compose(struct top_state *state, size_t width, size_t height);
void top_screen_free(struct top_screen *screen);

#endif
