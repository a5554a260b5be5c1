/* Suppressions, in the form that LeakSanitizer reads: one `leak:PATTERN` a line, # begins a comment.
 *
 * A pattern is looked for in the functions, files and modules of a stack. It may begin with ^ and end with $
 * to be anchored there, and * stands for any text. */
#ifndef MALLOSCOPE_VIEW_SUPPRESSIONS_H
#define MALLOSCOPE_VIEW_SUPPRESSIONS_H

#include "base/problem.h"
#include "view/source_frames.h"

struct suppression {
    char *pattern;
    bool used; /* it has matched a stack with something live */
};

struct suppressions {
    struct suppression *list;
    size_t count;
};

int suppressions_read(const char *path, struct suppressions *ret_suppressions, struct problem *problem);
void suppressions_free(struct suppressions *suppressions);

/* The first that matches a frame, or NULL. */
struct suppression *suppressions_find(
    const struct suppressions *suppressions, const struct source_frames *frames);

size_t suppressions_used(const struct suppressions *suppressions);

bool suppressions_match_text(const char *pattern, const char *text);

#endif
