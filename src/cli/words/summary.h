/* The lines above a table: which program, its totals, how good the figures are, and what to be careful about.
 */
#ifndef MALLOSCOPE_CLI_WORDS_SUMMARY_H
#define MALLOSCOPE_CLI_WORDS_SUMMARY_H

#include "cli/terminal/terminal.h"
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

/* What is missing, few samples, drops, stacks that are cut off: one "note:" each, wrapped. */
void summary_print_notes(FILE *out, const struct model *model, enum view_sort sort);

/* Were allocations lost that should have been recorded? */
bool summary_is_incomplete(const struct model *model);

/* Adds "total 12 MiB": the threads' exact count, or at least what it is known to be; where heaps are not
 * malloc's alone, the estimate. */
void summary_add_total(struct pieces *pieces, const struct model *model);

/* What people want to see first: what is live, or, where the program has ended and nearly nothing is, what
 * was at the peak. */
enum view_sort summary_default_sort(const struct model *model);
/* Says that the order is not by what is live. */
void summary_print_order(FILE *out, const char *what);

/* One line a heap: its name, what is live in it and in total, and its rate. */
void summary_print_heaps(FILE *out, const struct model *model);

/* Which word fits what is live: "live", "still allocated at exit", ... */
const char *summary_live_word(const struct model *model);

/* Text for people about a reason why something was not recorded. */
const char *summary_drop_text(enum drop drop);

/* Plain text, wrapped at words behind `title`. */
void summary_wrap(FILE *out, const char *title, const char *text);

#endif
