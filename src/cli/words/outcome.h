/* What `run` and `attach` print at their end: the recording, its figures in a few words, and which commands show
 * more. */
#ifndef MALLOSCOPE_CLI_WORDS_OUTCOME_H
#define MALLOSCOPE_CLI_WORDS_OUTCOME_H

/* What is told besides the figures; NULL: nothing. */
struct outcome_more {
    const char *unrecorded; /* unrecorded_text */
    const char *recordings; /* a line about other recordings, without its newline */
};

void outcome_print(const char *path, double seconds, struct outcome_more more);

/* The path as it is printed: clean, and relative to the current folder if it lies below that. The caller frees it. */
char *outcome_path(const char *path);

#endif
