/* What the lines of a table are called. */
#ifndef MALLOSCOPE_CLI_WORDS_ROW_TEXT_H
#define MALLOSCOPE_CLI_WORDS_ROW_TEXT_H

#include "cli/terminal/sheet.h"
#include "view/view.h"

/* Clean text of a name that the program gave, NULL for none. The caller frees it. */
char *row_text_heap(const struct view_row *row);
char *row_text_scope(const struct view_row *row);
char *row_text_type(const struct view_row *row, bool full);

/* What makes the row. `full`: long names are not shortened. */
struct place_text row_text(const struct view_row *row, enum view_by by, bool full);

#endif
