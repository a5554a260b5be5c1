/* Source frames: the frames of a stack with inlined calls expanded, leaf first, and the one that is its site.
 */
#ifndef MALLOSCOPE_VIEW_SOURCE_FRAMES_H
#define MALLOSCOPE_VIEW_SOURCE_FRAMES_H

#include "model/model.h"
#include "symbol/symbol.h"

#include <regex.h>

struct source_frame {
    const struct symbol *symbol;
    const struct model_module *module; /* NULL if not known */
};

/* A buffer that is used for one stack after the other. Starts zeroed. */
struct source_frames {
    struct source_frame *frames;
    size_t count; /* at least 1 after source_frames_expand */
    size_t capacity;
    size_t first, end;        /* the stack itself: its type may stand before it, and its heap behind */
    bool in_own_heap;         /* the stack's heap is one that the program manages itself */
    struct verdict *verdicts; /* on functions that were met lately, or NULL */
    const struct model_module *module; /* that was met last */
    bool module_is_recorder;
};

/* The calls, the scopes where they were entered, and the thread. false: out of memory. */
bool source_frames_expand(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack);
/* The same, with the type of what was allocated as the innermost frame, if it is known, and the heap as the
 * outermost one, if there is another than malloc's. */
bool source_frames_expand_labelled(struct source_frames *frames, const struct model *model,
    struct resolver *resolver, const struct model_stack *stack);
/* No more of the stack than it takes to tell its site. */
bool source_frames_expand_to_site(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack);
void source_frames_free(struct source_frames *frames);

/* Index of the innermost call, or where there is none of the innermost scope. */
size_t source_frames_innermost(const struct source_frames *frames);

/* Index of the site among `frames`: a call, or where none is known the innermost scope. */
size_t source_frames_site(const struct source_frames *frames, bool raw_sites);

/* Whether the frame is to be shown where the site is `site`: what is called from there is not, but the scopes
 * within it are, and the type of what was allocated. */
static inline bool source_frames_shows(const struct source_frames *frames, size_t site, size_t index) {
    return index >= site || frames->frames[index].symbol->given;
}

/* A filter remembers what it said about a symbol: programs have far fewer symbols than frames. */
struct frame_filter {
    bool on;
    regex_t expression;
    const struct symbol **known; /* open addressing by address; the low bit of `verdict` says matched */
    uint8_t *verdict;
    size_t size, used;
};

/* `text` NULL keeps everything. */
int frame_filter_make(const char *text, struct frame_filter *ret_filter, struct problem *problem);
void frame_filter_free(struct frame_filter *filter);
bool frame_filter_keeps(struct frame_filter *filter, const struct source_frames *frames);
bool frame_filter_matches_text(const struct frame_filter *filter, const char *text);

#endif
