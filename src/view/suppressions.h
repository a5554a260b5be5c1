/* Suppressions of leaks, in files that LeakSanitizer reads too: one `leak:PATTERN` a line; # begins a comment.
 *
 * A pattern is searched for in the function, the linkage name, the file and the module of each frame of a stack. ^
 * at its start and $ at its end anchor it, and * stands for any text. */
#ifndef MALLOSCOPE_VIEW_SUPPRESSIONS_H
#define MALLOSCOPE_VIEW_SUPPRESSIONS_H

#include "base/problem.h"
#include "view/source_frames.h"

struct suppression {
    char *pattern;
    bool used; /* it has matched a stack that has live memory */
};

struct suppressions {
    struct suppression *list;
    size_t count;
};

int suppressions_read(const char *path, struct suppressions *ret_suppressions, struct problem *problem);
void suppressions_free(struct suppressions *suppressions);

/* The first suppression that matches a frame of the stack, or NULL. */
struct suppression *suppressions_find(
    const struct suppressions *suppressions, const struct source_frames *frames);

/* How many have matched a stack that has live memory. */
size_t suppressions_used(const struct suppressions *suppressions);

/* Whether the pattern matches the text. NULL and empty texts never match. */
bool suppressions_match_text(const char *pattern, const char *text);

#endif
