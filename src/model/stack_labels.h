/* Labels of a stack: what is known of it besides its calls, by the names that the program gave
 * (include/malloscope.h). */
#ifndef MALLOSCOPE_MODEL_STACK_LABELS_H
#define MALLOSCOPE_MODEL_STACK_LABELS_H

#include "model/model.h"

struct stack_labels {
    const char *heap;   /* never NULL */
    const char *type;   /* NULL: not known */
    const char *scope;  /* the innermost; NULL: there is none */
    const char *thread; /* NULL: the stack does not say */
};

#define LABEL_LOST "?" /* stands for a name that the recording had no room for */

struct stack_labels stack_labels_of(const struct model *model, const struct model_stack *stack);

/* How many different names of each kind the stacks have. Equal names of several processes count once. */
struct label_counts {
    size_t types, scopes, threads;
};

void stack_labels_count(const struct model *model, struct label_counts *ret_counts);

#endif
