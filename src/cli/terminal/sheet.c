#include "cli/terminal/sheet.h"
#include "base/memory.h"
#include "cli/terminal/text.h"

#include <stdlib.h>
#include <string.h>

#define GAP        2
#define LAST_LEAST 24 /* least width of the names, if columns can be left out for it */
#define WORDS_MOST 20 /* greatest width of a column of words */

void sheet_start(struct sheet *sheet, struct terminal terminal, const char *last_title) {
    *sheet = (struct sheet){.terminal = terminal, .last_title = last_title};
}

void sheet_add_column(struct sheet *sheet, const char *title, int rank) {
    sheet->columns[sheet->column_count++] = (struct sheet_column){.title = title, .rank = rank};
}

void sheet_add_word_column(struct sheet *sheet, const char *title, int rank) {
    sheet_add_column(sheet, title, rank);
    sheet->columns[sheet->column_count - 1].of_words = true;
}

struct sheet_row *sheet_add_row(struct sheet *sheet) {
    if (sheet->row_count == sheet->row_capacity) {
        sheet->row_capacity = sheet->row_capacity ? 2 * sheet->row_capacity : 32;
        sheet->rows = memory_reallocate(sheet->rows, sheet->row_capacity * sizeof *sheet->rows);
    }
    struct sheet_row *row = &sheet->rows[sheet->row_count++];
    *row = (struct sheet_row){0};
    return row;
}

void sheet_free(struct sheet *sheet) {
    for (size_t i = 0; i < sheet->row_count; i++) {
        for (size_t k = 0; k < sheet->column_count; k++) free(sheet->rows[i].cells[k]);
        place_text_free(&sheet->rows[i].last);
    }
    free(sheet->rows);
    *sheet = (struct sheet){0};
}

static size_t figures_width(const struct sheet *sheet) {
    size_t width = 0;
    for (size_t i = 0; i < sheet->column_count; i++)
        if (!sheet->columns[i].hidden) width += sheet->columns[i].width + GAP;
    return width;
}

static bool hide_least_important(struct sheet *sheet) {
    struct sheet_column *least = NULL;
    for (size_t i = 0; i < sheet->column_count; i++) {
        struct sheet_column *column = &sheet->columns[i];
        if (!column->hidden && column->rank > 0 && (!least || column->rank > least->rank)) least = column;
    }
    if (least) least->hidden = true;
    return least != NULL;
}

void sheet_fit(struct sheet *sheet) {
    for (size_t i = 0; i < sheet->column_count; i++) {
        struct sheet_column *column = &sheet->columns[i];
        column->width = text_width(column->title);
        column->hidden = true; /* until a cell with text is found */
        for (size_t k = 0; k < sheet->row_count; k++) {
            const char *cell = sheet->rows[k].cells[i];
            if (!cell) continue;
            column->hidden = false;
            if (text_width(cell) > column->width) column->width = text_width(cell);
        }
    }
    size_t all = sheet->terminal.width;
    if (all == 0) return;
    for (size_t i = 0; i < sheet->column_count; i++)
        if (sheet->columns[i].of_words && sheet->columns[i].width > WORDS_MOST)
            sheet->columns[i].width = WORDS_MOST;
    while (figures_width(sheet) + LAST_LEAST > all && hide_least_important(sheet)) {
    }
    size_t used = figures_width(sheet);
    sheet->last_width = used + 1 < all ? all - used : 1;
}

static void print_cell(const struct sheet_column *column, const char *text) {
    cleanup_text char *shown = column->of_words ? text_shorten(text, column->width) : memory_copy_text(text);
    size_t width = text_width(shown);
    int blanks = (int)(column->width > width ? column->width - width : 0);
    printf("%*s%s%*s", column->of_words ? 0 : blanks, "", shown, GAP + (column->of_words ? blanks : 0), "");
}

void sheet_print_titles(const struct sheet *sheet) {
    fputs(sheet->terminal.bold, stdout);
    for (size_t i = 0; i < sheet->column_count; i++)
        if (!sheet->columns[i].hidden) print_cell(&sheet->columns[i], sheet->columns[i].title);
    cleanup_text char *title = sheet->last_width ? text_shorten(sheet->last_title, sheet->last_width)
                                                 : memory_copy_text(sheet->last_title);
    printf("%s%s\n", title, sheet->terminal.plain);
}

void sheet_print_row(const struct sheet *sheet, size_t row) {
    for (size_t i = 0; i < sheet->column_count; i++)
        if (!sheet->columns[i].hidden)
            print_cell(&sheet->columns[i], sheet->rows[row].cells[i] ? sheet->rows[row].cells[i] : "");
    place_text_print(sheet->rows[row].last, sheet->last_width, &sheet->terminal);
    putchar('\n');
}
