/* What would make a report better next time: debug symbols, Python's own allocator switched off. */
#ifndef MALLOSCOPE_CLI_WORDS_ADVICE_H
#define MALLOSCOPE_CLI_WORDS_ADVICE_H

#include "cli/input/load.h"
#include "view/view.h"

#include <stdio.h>

/* One "note:" each. `sort` is the figure that is shown. */
void advice_print(FILE *out, const struct loaded *loaded, enum view_sort sort);

#endif
