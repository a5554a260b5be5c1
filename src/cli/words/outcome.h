/* What came of a recording, when it ends: the figures in a few words, and what to do with it next. */
#ifndef MALLOSCOPE_CLI_WORDS_OUTCOME_H
#define MALLOSCOPE_CLI_WORDS_OUTCOME_H

/* `more` is a line to print before the advice, without its newline, or NULL. */
void outcome_print(const char *path, double seconds, const char *more);

/* From the current folder where the path lies in it, so that it can be pasted. The caller frees it. */
char *outcome_path(const char *path);

#endif
