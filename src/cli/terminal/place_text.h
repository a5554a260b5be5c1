/* A name and its place, cut to a width: how sites are shown in tables, trees and stacks. */
#ifndef MALLOSCOPE_CLI_TERMINAL_PLACE_TEXT_H
#define MALLOSCOPE_CLI_TERMINAL_PLACE_TEXT_H

#include "cli/terminal/terminal.h"

/* A name and where it is: both clean, both owned. The place is cut to its last part, then the name shortened.
 */
struct place_text {
    char *name, *place; /* place may be NULL */
};

/* A name and its place in at most `width` columns (0 = no limit), with the terminal's sequences. The caller
 * frees it. */
char *place_text_fit(struct place_text text, size_t width, const struct terminal *terminal);
/* Prints a name and its place in at most `width` columns (0 = no limit). */
void place_text_print(struct place_text text, size_t width, const struct terminal *terminal);
void place_text_free(struct place_text *text);

#endif
