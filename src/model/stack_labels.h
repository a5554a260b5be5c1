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

/* Whether a program told of heaps besides malloc's. Where none did, views need not tell them apart. */
static inline bool model_has_heaps(const struct model *model) {
    return model->shows_heaps || model->heap_count > model->malloc_heap_count;
}

/* How many names there are of each kind. Names of several processes that are equal count once. */
struct label_counts {
    size_t types, scopes, threads;
};

void stack_labels_count(const struct model *model, struct label_counts *ret_counts);

/* The figures of a heap; those of several processes that have one name are added up. */
struct heap_totals {
    const char *name;
    uint64_t rate; /* the largest */
    struct figures figures;
};

/* malloc's first, then by name. The caller frees them. */
struct heap_totals *model_heap_totals(const struct model *model, size_t *ret_count);

#endif
