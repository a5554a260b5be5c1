/* The filter that commands take: a regular expression that some frame of a stack has to match. */
#ifndef MALLOSCOPE_VIEW_FRAME_FILTER_H
#define MALLOSCOPE_VIEW_FRAME_FILTER_H

#include "base/hash_index.h"
#include "base/problem.h"
#include "view/source_frames.h"

#include <regex.h>

struct judged_symbol;

/* A program has far fewer symbols than its stacks have frames, so the filter remembers its answer for each symbol. */
struct frame_filter {
    bool on; /* false: everything matches */
    regex_t expression;
    struct judged_symbol *judged;
    uint32_t count, capacity;
    struct hash_index index; /* of `judged`, by the symbol's address */
};

/* `text` is a POSIX extended regular expression. NULL makes a filter that keeps everything. */
int frame_filter_make(const char *text, struct frame_filter *ret_filter, struct problem *problem);
void frame_filter_free(struct frame_filter *filter);

/* Whether a frame matches by its function, its file, the path of its module, or by the name that the program gave. */
bool frame_filter_keeps(struct frame_filter *filter, const struct source_frames *frames);
bool frame_filter_matches_text(const struct frame_filter *filter, const char *text);

#endif
