/* The model of one source, as most tests want it. */
#ifndef MALLOSCOPE_TESTS_LOAD_MODEL_H
#define MALLOSCOPE_TESTS_LOAD_MODEL_H

#include "model/model.h"

static inline int load_model(const char *source, struct model **ret_model, struct problem *problem) {
    return model_load(
        &(struct model_load_options){.sources = &source, .source_count = 1}, ret_model, problem);
}

#endif
