#include "cli/words/row_text.h"
#include "base/memory.h"
#include "cli/terminal/text.h"
#include "cli/words/site_text.h"
#include "view/short_name.h"

char *row_text_heap(const struct view_row *row) {
    return row->heap ? text_clean(row->heap) : NULL;
}
char *row_text_scope(const struct view_row *row) {
    return row->scope ? text_clean(row->scope) : NULL;
}
char *row_text_type(const struct view_row *row, bool full) {
    char *text = row->type ? text_clean(row->type) : NULL;
    if (text && !full && text[0] != '[') short_name(text, terminal_glyphs()->ellipsis);
    return text;
}

struct place_text row_text(const struct view_row *row, enum view_by by, bool full) {
    switch (by) {
    case BY_HEAP:
        return (struct place_text){.name = row_text_heap(row)};
    case BY_TYPE:
        return (struct place_text){.name = row_text_type(row, full)};
    case BY_SCOPE:
        return (struct place_text){.name = row_text_scope(row)};
    default:
        return site_text(row->function, row->file, row->line, row->module, full);
    }
}
