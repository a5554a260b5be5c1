/* The frames of a stack as lines of text. */
#ifndef MALLOSCOPE_CLI_WORDS_STACK_TEXT_H
#define MALLOSCOPE_CLI_WORDS_STACK_TEXT_H

#include "cli/input/load.h"
#include "cli/terminal/place_text.h"

struct stack_style {
    bool raw_site;      /* show the allocation wrappers between the site and malloc, too */
    bool full_names;    /* do not shorten names */
    const char *indent; /* printed before each frame */
};

struct frame_text {
    struct place_text text;
    size_t repeats; /* how many equal frames follow one another: a function that calls itself from one line */
};

/* The frames of a stack as stack_text_print shows them. The caller frees them with stack_text_free. */
struct frame_text *stack_text_make(const struct loaded *loaded, const struct model_stack *stack,
    const struct stack_style *style, size_t *ret_count);
void stack_text_free(struct frame_text *frames, size_t count);

/* Prints the frames of a stack, one a line, innermost first. Where the program has named them, the type of the
 * block is the first line and its heap the last. Equal frames that follow one another are printed once, with their
 * number. */
void stack_text_print(const struct loaded *loaded, const struct model_stack *stack,
    const struct stack_style *style, const struct terminal *terminal);

#endif
