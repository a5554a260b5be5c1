/* The lines above a table: which program, its totals, how good the figures are, and what to be careful about.
 */
#ifndef MALLOSCOPE_CLI_WORDS_SUMMARY_H
#define MALLOSCOPE_CLI_WORDS_SUMMARY_H

#include "cli/terminal/pieces.h"
#include "model/model.h"
#include "view/view.h"

void summary_print(FILE *out, const struct model *model);

/* Adds "total 12 MiB": the threads' exact count, or at least what it is known to be; where heaps are not
 * malloc's alone, the estimate. */
void summary_add_total(struct pieces *pieces, const struct model *model);

/* What people want to see first: what is live, or, where the program has ended and nearly nothing is, what
 * was at the peak. */
enum view_sort summary_default_sort(const struct model *model);
/* One line a heap: its name, what is live in it and in total, and its rate. */
void summary_print_heaps(FILE *out, const struct model *model);

/* Which word fits what is live: "live", "still allocated at exit", ... */
const char *summary_live_word(const struct model *model);

#endif
