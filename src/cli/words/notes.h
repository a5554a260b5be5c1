/* What to be careful about: the lines that begin with "note:" and "INCOMPLETE:". */
#ifndef MALLOSCOPE_CLI_WORDS_NOTES_H
#define MALLOSCOPE_CLI_WORDS_NOTES_H

#include "model/model.h"
#include "view/view.h"

#include <stdio.h>

/* What is missing, few samples, drops, stacks that are cut off: one "note:" each, wrapped. */
void summary_print_notes(FILE *out, const struct model *model, enum view_sort sort);

/* Were allocations lost that should have been recorded? */
bool summary_is_incomplete(const struct model *model);

/* Says that the order is not by what is live. */
void summary_print_order(FILE *out, const char *what);

/* Text for people about a reason why something was not recorded. */
const char *summary_drop_text(enum drop drop);

#endif
