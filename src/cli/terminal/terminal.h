/* What the place we print to can show. */
#ifndef MALLOSCOPE_CLI_TERMINAL_TERMINAL_H
#define MALLOSCOPE_CLI_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct terminal {
    size_t width; /* columns; 0 = no limit (a file or a pipe, COLUMNS not set) */
    bool is_terminal;
    bool can_erase; /* a line can be taken back */
    /* Sequences to print, empty where colour is not wanted. */
    const char *bold, *dim, *alarm, *plain;
};

struct terminal terminal_of(FILE *stream);

/* Characters that depend on the character set. */
struct glyphs {
    bool unicode;
    const char *plus_minus, *ellipsis, *dot, *micro, *times;
    const char *branch, *last_branch, *trunk; /* of a tree, one column each */
};

const struct glyphs *terminal_glyphs(void);

/* Takes the character set from the environment: LC_ALL, LC_CTYPE, LANG; UTF-8 when none of them is set.
 * Called once at the start; until then glyphs are ASCII. */
void terminal_choose_glyphs(void);

#endif
