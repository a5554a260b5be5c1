/* A name with its place, "parse  parse.c:12", cut to a width. Tables, trees and stacks show sites like this. */
#ifndef MALLOSCOPE_CLI_TERMINAL_PLACE_TEXT_H
#define MALLOSCOPE_CLI_TERMINAL_PLACE_TEXT_H

#include "cli/terminal/terminal.h"

/* Both texts are clean (text_clean) and belong to the struct. */
struct place_text {
    char *name;
    char *place; /* or NULL */
};

/* Both in at most `width` columns (0 = no limit), with the terminal's colour sequences. Where there is too little
 * room, the place is cut to its last part first, then the name is shortened. The caller frees the text. */
char *place_text_fit(struct place_text text, size_t width, const struct terminal *terminal);
/* Prints the same to stdout. */
void place_text_print(struct place_text text, size_t width, const struct terminal *terminal);
void place_text_free(struct place_text *text);

#endif
