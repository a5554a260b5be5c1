/* What would make the report better: debug info for files without names, and what is shown of Python objects. */
#ifndef MALLOSCOPE_CLI_WORDS_ADVICE_H
#define MALLOSCOPE_CLI_WORDS_ADVICE_H

#include "cli/input/load.h"
#include "view/view.h"

#include <stdio.h>

/* Prints a "note:" for each piece of advice. `sort` is the figure that the report shows: files that hold much of it
 * are named. */
void advice_print(FILE *out, const struct loaded *loaded, enum view_sort sort);

#endif
