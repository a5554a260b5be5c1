/* A model under construction, to which one recording after the other is added. */
#ifndef MALLOSCOPE_MODEL_MODEL_BUILDER_H
#define MALLOSCOPE_MODEL_MODEL_BUILDER_H

#include "model/model.h"

struct model_builder {
    struct model *model;
    size_t
        *frame_starts; /* where the frames of each stack begin in frame_store, which moves while it grows */
    size_t frame_count, frame_capacity;
    size_t stack_capacity, frame_start_capacity, live_capacity;
    size_t module_capacity, numbered_capacity, thread_capacity, process_capacity, names_capacity,
        heap_capacity, text_capacity, code_capacity, sample_capacity;

    /* As in struct model_load_options. */
    bool with_samples;
    bool skip_resident_size;
    struct archive_writer *archive;

    uint64_t until;   /* ns since the start: only blocks born up to then count as live; UINT64_MAX: all */
    double depth_sum; /* sum of the samples' depths, for health.mean_depth */
    uint64_t
        text_left; /* bytes that copies of texts of the current recording may still take. Records of a hostile file
                           can share one long text, and each would get a copy of it. */
    size_t warning_count;
};

/* Begins with an empty model. */
void model_builder_start(struct model_builder *builder);
/* Adds the figures up and hands the model to the caller. */
struct model *model_builder_finish(struct model_builder *builder);
void model_builder_discard(struct model_builder *builder);

/* Adds a sentence to the model's warning. */
void model_builder_warn(struct model_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a sentence about something that is missing of a recording, and marks the model as damaged. */
#define model_builder_warn_damage(builder, ...)                                                              \
    ((builder)->model->damaged = true, model_builder_warn(builder, __VA_ARGS__))

/* Makes room for `count` more elements in the array that the pointer at `array` points to. `*capacity` elements fit
 * in it, and `used` are in use. */
void model_builder_grow(void *array, size_t *capacity, size_t used, size_t count, size_t element_size);

#endif
