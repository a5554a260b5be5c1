/* What is known of a stack besides its calls, by the names that the program gave (include/malloscope.h). */
#ifndef MALLOSCOPE_MODEL_STACK_LABELS_H
#define MALLOSCOPE_MODEL_STACK_LABELS_H

#include "model/model.h"

struct stack_labels {
    const char *heap;   /* never NULL */
    const char *type;   /* NULL = not known */
    const char *scope;  /* the innermost; NULL = none */
    const char *thread; /* NULL = it is not part of the stack */
};

#define LABEL_LOST "?" /* stands for a name that the recording had no room for */

struct stack_labels stack_labels_of(const struct model *model, const struct model_stack *stack);

/* How many names there are of each kind. Names of several processes that are equal count once. */
struct label_counts {
    size_t types, scopes, threads;
};

void stack_labels_count(const struct model *model, struct label_counts *ret_counts);

#endif
