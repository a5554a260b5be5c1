/* The peak of a process's heap, and what its stacks held then. */
#ifndef MALLOSCOPE_MODEL_PEAK_H
#define MALLOSCOPE_MODEL_PEAK_H

#include "model/model.h"

/* Adds the peak of the process that was added last to the model's totals, and takes the bias of the maximum out of
 * the figures at the peak of its stacks, which are those from `first_stack` on. `allocated` is what its threads have
 * counted, an upper bound; INFINITY if it is not known. */
void peak_settle(
    struct model *model, const struct recording_header *header, size_t first_stack, double allocated);

#endif
