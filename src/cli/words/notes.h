/* What to be careful about: the lines that begin with "note:" and "INCOMPLETE:". */
#ifndef MALLOSCOPE_CLI_WORDS_NOTES_H
#define MALLOSCOPE_CLI_WORDS_NOTES_H

#include "model/model.h"
#include "view/view.h"

#include <stdio.h>

/* What is missing, few samples, drops, stacks that are cut off: one "note:" each, wrapped. */
void notes_print(FILE *out, const struct model *model, enum view_sort sort);

/* Were allocations lost that should have been recorded? */
bool notes_incomplete(const struct model *model);

/* Says that the order is not by what is live. */
void notes_print_order(FILE *out, const char *what);

/* Text for people about a reason why something was not recorded. */
const char *notes_drop_text(enum drop drop);

#endif
