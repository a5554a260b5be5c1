/* What the terminal, file or pipe behind a stream can show: width, colours, character set. */
#ifndef MALLOSCOPE_CLI_TERMINAL_TERMINAL_H
#define MALLOSCOPE_CLI_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct terminal {
    size_t width; /* columns; 0 = no limit (a file or pipe, and COLUMNS is not set) */
    bool is_terminal;
    bool can_erase; /* a line can be erased and written again */
    /* Escape sequences; empty where there are no colours, or NO_COLOR is set. */
    const char *bold, *dim, *alarm, *plain;
};

struct terminal terminal_of(FILE *stream);

/* Texts that differ with the character set. */
struct glyphs {
    bool unicode;
    const char *plus_minus, *ellipsis, *dot, *micro, *times;
    const char *branch, *last_branch, *trunk; /* the lines of a tree, one column each */
};

const struct glyphs *terminal_glyphs(void);

/* Takes the character set from LC_ALL, LC_CTYPE or LANG; UTF-8 if none of them is set. Both executables call it
 * once at their start. Before that, glyphs are ASCII. */
void terminal_choose_glyphs(void);

#endif
