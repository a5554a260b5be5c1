/* The frames of a stack as lines of text. */
#ifndef MALLOSCOPE_CLI_WORDS_STACK_TEXT_H
#define MALLOSCOPE_CLI_WORDS_STACK_TEXT_H

#include "cli/input/load.h"
#include "cli/terminal/place_text.h"

struct stack_style {
    bool raw_site;   /* with the allocation wrappers above the site */
    bool full_names; /* not shortened */
    const char *indent;
};

struct frame_text {
    struct place_text text;
    size_t repeats; /* of a function that calls itself from one line */
};

/* All frames of a stack, as they are printed below. The caller frees them with stack_text_free. */
struct frame_text *stack_text_make(const struct loaded *loaded, const struct model_stack *stack,
    const struct stack_style *style, size_t *ret_count);
void stack_text_free(struct frame_text *frames, size_t count);

/* Prints all frames of a stack, innermost first, one a line, from the type of what was allocated to its heap,
 * where these are known. A function that calls itself from one line is printed once, with how often. */
void stack_text_print(const struct loaded *loaded, const struct model_stack *stack,
    const struct stack_style *style, const struct terminal *terminal);

#endif
