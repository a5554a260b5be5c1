/* "Did you mean ...?" */
#ifndef MALLOSCOPE_CLI_OPTIONS_SPELLING_H
#define MALLOSCOPE_CLI_OPTIONS_SPELLING_H

#include <stddef.h>

/* The candidate nearest to `text` in spelling, or NULL if none is near. */
const char *spelling_nearest(const char *text, const char *const *candidates, size_t count);

#endif
