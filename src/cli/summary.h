/* The lines above a table: which program, its totals, how good the figures are, and what to be careful about.
 */
#ifndef MALLOSCOPE_CLI_SUMMARY_H
#define MALLOSCOPE_CLI_SUMMARY_H

#include "cli/terminal.h"
#include "model/model.h"
#include "view/view.h"

/* Prints pieces one after the other, separated by dots, going to a new line where the next would not fit. */
struct pieces {
    FILE *out;
    size_t width; /* 0 = no limit */
    size_t used;
    const char *indent;
};

void pieces_add(struct pieces *pieces, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pieces_end(struct pieces *pieces);

void summary_print(FILE *out, const struct model *model);

/* Few samples, drops, a program that is still running or was killed: one "note:" each, wrapped. */
void summary_print_notes(FILE *out, const struct model *model, enum view_sort sort);

/* Which word fits what is live: "live", "still allocated at exit", ... */
const char *summary_live_word(const struct model *model);

/* Text for people about a reason why something was not recorded. */
const char *summary_drop_text(enum drop drop);

/* Plain text, wrapped at words behind `title`. */
void summary_wrap(FILE *out, const char *title, const char *text);

#endif
