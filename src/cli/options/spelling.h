/* "Did you mean ...?" */
#ifndef MALLOSCOPE_CLI_OPTIONS_SPELLING_H
#define MALLOSCOPE_CLI_OPTIONS_SPELLING_H

#include <stddef.h>

/* The candidate that `text` is most likely a misspelling or the beginning of; NULL if none is near. */
const char *spelling_nearest(const char *text, const char *const *candidates, size_t count);

#endif
