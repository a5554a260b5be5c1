/* A table that fits its terminal. It has columns of figures, right-aligned; columns of words, left-aligned; and a
 * last column of names, which takes the rest of the width. Where names would get too little room, the least
 * important columns are left out. */
#ifndef MALLOSCOPE_CLI_TERMINAL_SHEET_H
#define MALLOSCOPE_CLI_TERMINAL_SHEET_H

#include "cli/terminal/place_text.h"
#include "cli/terminal/terminal.h"

#include <stddef.h>

#define SHEET_COLUMNS_MAX 16

struct sheet_row {
    char *cells[SHEET_COLUMNS_MAX]; /* belong to the sheet. A column in which all are NULL is left out */
    struct place_text last;
};

struct sheet_column {
    const char *title;
    int rank; /* the column of the highest rank is left out first; one of rank 0 never is */
    bool of_words;
    size_t width;
    bool hidden;
};

struct sheet {
    struct terminal terminal;
    struct sheet_column columns[SHEET_COLUMNS_MAX];
    size_t column_count; /* without the column of names */
    const char *last_title;
    struct sheet_row *rows;
    size_t row_count, row_capacity;
    size_t last_width; /* of the column of names; 0 = no limit */
};

void sheet_start(struct sheet *sheet, struct terminal terminal, const char *last_title);
void sheet_add_column(struct sheet *sheet, const char *title, int rank);
/* Its cells must be clean (text_clean). On a terminal long ones are shortened. */
void sheet_add_word_column(struct sheet *sheet, const char *title, int rank);
/* The row may be filled in until the next one is added, which moves all rows. */
struct sheet_row *sheet_add_row(struct sheet *sheet);
void sheet_free(struct sheet *sheet);

/* Computes the widths. Call it after the last row was added and before anything is printed. */
void sheet_fit(struct sheet *sheet);
void sheet_print_titles(const struct sheet *sheet);
void sheet_print_row(const struct sheet *sheet, size_t row);

#endif
