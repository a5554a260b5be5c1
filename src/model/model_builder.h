/* From snapshots to a model: each recording is added to what is there. */
#ifndef MALLOSCOPE_MODEL_MODEL_BUILDER_H
#define MALLOSCOPE_MODEL_MODEL_BUILDER_H

#include "model/model.h"
#include "model/snapshot.h"

/* A model under construction. */
struct model_builder {
    struct model *model;
    size_t *frame_starts; /* of each stack, in frame_store: it moves while it grows */
    size_t frame_count, frame_capacity;
    size_t stack_capacity, frame_start_capacity, live_capacity;
    size_t module_capacity, numbered_capacity, thread_capacity, process_capacity, names_capacity,
        heap_capacity, text_capacity, code_capacity, sample_capacity;
    bool with_samples;              /* the model lists them */
    struct archive_writer *archive; /* gets a copy of each recording, unless it is NULL */
    bool is_glance;                 /* see model_glance */
    uint64_t until;                 /* ns: only blocks born up to then count as live */
    double depth_sum;               /* frames, times samples */
    uint64_t
        text_left; /* bytes that this recording's paths may still take: text can be shared, copies are not */
    size_t warning_count;
};

/* Begins with an empty model. */
void model_builder_start(struct model_builder *builder);
/* Adds up what is there, and gives the model. */
struct model *model_builder_finish(struct model_builder *builder);
void model_builder_discard(struct model_builder *builder);

/* Adds a sentence to the model's warning. */
void model_builder_warn(struct model_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, for what is missing of the recording: the model is `damaged`. */
#define model_builder_warn_damage(builder, ...)                                                              \
    ((builder)->model->damaged = true, model_builder_warn(builder, __VA_ARGS__))

/* Room for `count` more elements in an array of `*capacity`. */
void model_builder_grow(void *array, size_t *capacity, size_t used, size_t count, size_t element_size);

/* Adds a recording. Where it fails the model is as before. */
int load_recording(struct model_builder *builder, const struct snapshot *snapshot, const char *path,
    struct problem *problem);

/* Adds the stacks of the last process with all their figures. */
void load_stacks(struct model_builder *builder, const struct snapshot *snapshot, const char *path);

#endif
