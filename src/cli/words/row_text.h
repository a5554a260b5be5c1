/* The texts that name a row of a table. */
#ifndef MALLOSCOPE_CLI_WORDS_ROW_TEXT_H
#define MALLOSCOPE_CLI_WORDS_ROW_TEXT_H

#include "cli/terminal/sheet.h"
#include "view/view.h"

/* Names that the program has given, clean; NULL if it has given none. Names of types are shortened as those of
 * functions are, unless `full`. The caller frees them. */
char *row_text_heap(const struct view_row *row);
char *row_text_scope(const struct view_row *row);
char *row_text_type(const struct view_row *row, bool full);

/* What the row is about, for a table that is grouped by `by`. `full`: long names are not shortened. */
struct place_text row_text(const struct view_row *row, enum view_by by, bool full);

#endif
