/* The figures of each heap. Heaps of several processes that have one name are added up. */
#ifndef MALLOSCOPE_MODEL_HEAP_TOTALS_H
#define MALLOSCOPE_MODEL_HEAP_TOTALS_H

#include "model/model.h"

struct heap_totals {
    const char *name;
    uint64_t rate; /* sampling interval; the largest of those that were added up */
    struct figures figures;
};

/* malloc's heap first, then by name. The caller frees them. */
struct heap_totals *heap_totals_make(const struct model *model, size_t *ret_count);

#endif
