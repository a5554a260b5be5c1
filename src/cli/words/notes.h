/* What the reader of a report should know about its figures: the lines that begin with "note:" and "INCOMPLETE:". */
#ifndef MALLOSCOPE_CLI_WORDS_NOTES_H
#define MALLOSCOPE_CLI_WORDS_NOTES_H

#include "model/model.h"
#include "view/view.h"

#include <stdio.h>

/* Prints what is missing, whether the figures rest on few samples, what was dropped, and whether stacks are cut off.
 * `sort` is the figure that the report shows. */
void notes_print(FILE *out, const struct model *model, enum view_sort sort);

/* Prints whether `sum`, the figures of a part of the model, rest on few samples. `what` names them: "what matches
 * rest". */
void notes_print_samples(
    FILE *out, const struct model *model, const struct figures *sum, const char *what, enum view_sort sort);

/* Whether allocations were lost that should have been recorded. */
bool notes_incomplete(const struct model *model);

/* Whether nothing was lost and no child process is without a recording: "every allocation" may be said. */
bool notes_is_whole(const struct model *model);

/* Prints that the report shows `what` in place of what is live (see summary_default_sort). */
void notes_print_order(FILE *out, const char *what);

/* Which share of the frees were of blocks from before the attach, in words; NULL if there were none, or if frees were
 * not counted. The caller frees it. */
char *notes_older_frees(const struct model *model);

/* What was dropped, in words: "threads without a record: their allocations are missing". */
const char *notes_drop_text(enum drop drop);

#endif
