/* What `run` and `attach` print at their end: the recording, its figures in a few words, and which commands show
 * more. */
#ifndef MALLOSCOPE_CLI_WORDS_OUTCOME_H
#define MALLOSCOPE_CLI_WORDS_OUTCOME_H

/* `more` is a line to be printed before the advice, without its newline; NULL: none. */
void outcome_print(const char *path, double seconds, const char *more);

/* The path as it is printed: clean, and relative to the current folder if it lies below that. The caller frees it. */
char *outcome_path(const char *path);

#endif
