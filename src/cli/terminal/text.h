/* Text that is safe to print and fits its place. Names come from recorded programs: they are not trusted and may
 * hold any bytes. */
#ifndef MALLOSCOPE_CLI_TERMINAL_TEXT_H
#define MALLOSCOPE_CLI_TERMINAL_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* A clean copy: nothing in it can move the cursor, change colours or reverse the reading direction. Control
 * characters, bytes that are not UTF-8, and direction marks become \xNN or \u{NNNN}; so does everything beyond
 * ASCII if the terminal is not UTF-8. NULL gives an empty text. The caller frees the copy. */
char *text_clean(const char *text);

/* A clean copy of a formatted text. The caller frees it. */
char *text_clean_format(const char *format, va_list arguments);

/* The path relative to the current folder if it lies below that; otherwise the path itself. Points into `path`. */
const char *text_path_from_here(const char *path);

/* A clean text as one word for a shell, quoted if necessary. The caller frees it. */
char *text_shell_word(const char *text);

/* How many columns a clean text takes. */
size_t text_width(const char *text);

/* A copy of a clean text in at most `width` columns. If it is too long, its middle is left out. The caller frees
 * it. */
char *text_shorten(const char *text, size_t width);

/* Prints help text, whose lines are about 100 columns long, in `width` columns (0 = no limit), wrapped at words.
 * Lines of 76 columns and more are joined with the next one; indented lines and rows of tables are not. The caller
 * has printed `indent` columns before the first line; the other lines are indented by as much. */
void text_print_wrapped(FILE *out, const char *text, size_t indent, size_t width);

/* Prints the title in bold and the text behind it, cleaned and wrapped at words under its own beginning. */
void text_print_titled(FILE *out, const char *title, const char *text);

#endif
