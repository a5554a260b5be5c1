/* Adding one recording to a model. */
#ifndef MALLOSCOPE_MODEL_LOAD_RECORDING_H
#define MALLOSCOPE_MODEL_LOAD_RECORDING_H

#include "model/model_builder.h"
#include "model/snapshot.h"

/* Adds a recording. If this fails, the model is as before. */
int load_recording(struct model_builder *builder, const struct snapshot *snapshot, const char *path,
    struct problem *problem);

/* The model of the one recording at `path`, which is neither an archive nor a folder. For `malloscope run` alone,
 * whose executable is not linked with the library that unpacks archives: each library delays the start of the
 * program. All others call model_load. */
int load_recording_alone(const char *path, struct model **ret_model, struct problem *problem);

/* Adds the stacks of the process that was added last, with all their figures (load_stacks.c). */
void load_stacks(struct model_builder *builder, const struct snapshot *snapshot, const char *path);

#endif
