/* The lines above a table: which program it was, and its totals. (The notes below them are in notes.h.) */
#ifndef MALLOSCOPE_CLI_WORDS_SUMMARY_H
#define MALLOSCOPE_CLI_WORDS_SUMMARY_H

#include "cli/terminal/pieces.h"
#include "model/model.h"
#include "view/view.h"

void summary_print(FILE *out, const struct model *model);

/* Adds the piece "total 12 MiB": the exact total, "at least" the exact total if some of it is missing, or the
 * estimate where the exact total does not apply. */
void summary_add_total(struct pieces *pieces, const struct model *model);

/* The figure that people want to see first: SORT_LIVE; or SORT_PEAK if the program has ended and less than 5 % of
 * its peak is live. */
enum view_sort summary_default_sort(const struct model *model);
/* Prints one line for each heap: its name, what is live in it, its total and its rate. */
void summary_print_heaps(FILE *out, const struct model *model);

/* What "live" means for this recording: "live now", "still allocated at exit", ... */
const char *summary_live_word(const struct model *model);

#endif
