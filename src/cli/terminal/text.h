/* Text from programs, made fit for a terminal: names are untrusted, may hold anything, and must fit a width.
 */
#ifndef MALLOSCOPE_CLI_TERMINAL_TEXT_H
#define MALLOSCOPE_CLI_TERMINAL_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* A copy in which nothing can move the cursor, change colours or reverse the reading direction: control
 * characters, bytes that are not UTF-8 and direction marks become \xNN or \u{NNNN}. Where the terminal is not
 * UTF-8, so does everything beyond ASCII. The caller frees it. NULL gives an empty text. */
char *text_clean(const char *text);

/* The same of a text that is made from a format. */
char *text_clean_format(const char *format, va_list arguments);

/* The path as seen from the current folder, if it lies below that; else the path itself. */
const char *text_path_from_here(const char *path);

/* A clean text as one word of a shell's command line: quoted if need be. The caller frees it. */
char *text_shell_word(const char *text);

/* Columns that a clean text takes. */
size_t text_width(const char *text);

/* A copy of a clean text in at most `width` columns, with its middle left out if need be. The caller frees
 * it. */
char *text_shorten(const char *text, size_t width);

/* Prints text that was written for 100 columns in `width` (0 = no limit), wrapped at words: lines that nearly
 * fill theirs go on in the next, lines that begin with a blank or hold a table do not. The first line begins
 * at column `indent`, the others are moved there. */
void text_print_wrapped(FILE *out, const char *text, size_t indent, size_t width);

/* Plain text, wrapped at words behind `title`. */
void text_print_titled(FILE *out, const char *title, const char *text);

#endif
