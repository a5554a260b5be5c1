#include "model/model.h"

#include "base/memory.h"
#include "model/model_builder.h"
#include "model/module_map.h"
#include "model/source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_modules(const void *a, const void *b) {
    const struct model_module *x = a, *y = b;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->first_seen > y->first_seen) - (x->first_seen < y->first_seen);
}

static int compare_numbers(const void *a, const void *b) {
    const struct model_module *x = *(const struct model_module *const *)a,
                              *y = *(const struct model_module *const *)b;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static struct model_place find_by_number(
    const struct model *model, uint32_t process, uint32_t number, uint64_t offset) {
    const struct model_module wanted = {.process = process, .number = number}, *key = &wanted;
    const struct model_module **found = NULL;
    if (model->module_count)
        found = bsearch(&key, model->numbered, model->module_count, sizeof *model->numbered, compare_numbers);
    if (!found || offset - (*found)->file_offset > (*found)->end - (*found)->start)
        return (struct model_place){0};
    return (struct model_place){*found, (*found)->start + (offset - (*found)->file_offset)};
}

const struct model_module *model_find_module(const struct model *model, uint32_t process, uint64_t address) {
    return module_map_find(model, process, address);
}

struct model_place model_find_place(const struct model *model, uint32_t process, uint64_t word) {
    uint64_t value = word & FRAME_VALUE_MASK;
    switch (word >> FRAME_KIND_SHIFT) {
    case FRAME_NATIVE:
        return (struct model_place){model_find_module(model, process, value ? value - 1 : 0), value};
    case FRAME_MODULE:
        return find_by_number(
            model, process, word >> FRAME_MODULE_SHIFT & FRAME_MODULE_MASK, word & FRAME_OFFSET_MASK);
    default:
        return (struct model_place){0};
    }
}

static void sort_modules(struct model *model) {
    if (model->module_count == 0) return;
    qsort(model->modules, model->module_count, sizeof *model->modules, compare_modules);
    for (size_t i = 0; i < model->module_count; i++) model->numbered[i] = &model->modules[i];
    qsort(model->numbered, model->module_count, sizeof *model->numbered, compare_numbers);
    module_map_make(model);
}

static void sum_up(struct model_builder *builder) {
    struct model *model = builder->model;
    struct figures *sum = &model->totals.sum;
    figures_clear(sum);
    for (size_t i = 0; i < model->stack_count; i++) {
        struct model_stack *stack = &model->stacks[i];
        stack->frames = model->frame_store + builder->frame_starts[i];
        figures_add(sum, &stack->figures);
    }
    /* A running program's header is copied before its stacks: they may have grown past the peak it knew. */
    model->totals.peak_bytes = fmax(model->totals.peak_bytes, sum->live_bytes.value);
    model->totals.peak_objects = sum->at_peak_objects.value;
    struct health *health = &model->health;
    double samples = (double)sum->samples;
    double truncated = samples > 0 ? (double)health->truncated / samples : 0;
    health->complete = 1 - truncated;
    health->mean_depth = samples > 0 ? builder->depth_sum / samples : 0;
    health->confidence = truncated < 0.05 ? "high" : truncated < 0.20 ? "medium" : "low";

    if (model->process_count > 1) {
        free(model->timeline);
        model->timeline = NULL;
        model->moment_count = 0;
    }
    sort_modules(model);
}

void model_builder_start(struct model_builder *builder) {
    builder->model = memory_allocate(sizeof *builder->model);
    builder->model->exact = builder->model->totals.exact_is_complete = true;
}

void model_builder_discard(struct model_builder *builder) {
    free(builder->frame_starts);
    model_free(builder->model);
}

struct model *model_builder_finish(struct model_builder *builder) {
    sum_up(builder);
    free(builder->frame_starts);
    return builder->model;
}

int model_load_recording(const char *path, struct model **ret_model, struct problem *problem) {
    struct model_builder builder = {.until = UINT64_MAX};
    struct recording_file file;
    struct snapshot snapshot;
    model_builder_start(&builder);
    int r = recording_file_open(path, 0, &file, problem);
    if (r == 0) {
        r = snapshot_take(&file, &snapshot, problem);
        recording_file_close(&file);
    }
    if (r == 0) {
        r = load_recording(&builder, &snapshot, path, problem);
        snapshot_free(&snapshot);
    }
    if (r == 0)
        *ret_model = model_builder_finish(&builder);
    else
        model_builder_discard(&builder);
    return r;
}

const char *model_find_text(const struct model *model, uint32_t process, uint64_t number) {
    const struct model_process *of = &model->processes[process];
    return number && number < of->text_count ? model->texts[of->first_text + number] : NULL;
}

const struct model_code *model_find_code(const struct model *model, uint32_t process, uint64_t word) {
    const struct model_process *of = &model->processes[process];
    uint64_t number = word >> FRAME_CODE_SHIFT & FRAME_CODE_MASK;
    if (!number || number >= of->code_count) return NULL;
    const struct model_code *code = &model->codes[of->first_code + number];
    return code->name ? code : NULL;
}

void model_free(struct model *model) {
    if (!model) return;
    for (size_t i = 0; i < model->process_count; i++) {
        free(model->processes[i].source);
        free(model->processes[i].executable);
        free(model->processes[i].command_line);
        free(model->processes[i].allocator);
    }
    for (size_t i = 0; i < model->module_count; i++) free(model->modules[i].path);
    for (size_t i = 0; i < model->names_count; i++) {
        free(model->names[i].bytes);
        free(model->names[i].path);
    }
    for (size_t i = 0; i < model->text_count; i++) free(model->texts[i]);
    free(model->texts);
    free(model->heaps);
    for (size_t i = 0; i < model->code_count; i++) free(model->codes[i].name);
    free(model->codes);
    free(model->names);
    free(model->samples);
    free(model->processes);
    free(model->stacks);
    free(model->live);
    free(model->modules);
    free(model->numbered);
    free(model->module_ranges);
    free(model->threads);
    free(model->timeline);
    free(model->frame_store);
    free(model->warning);
    free(model);
}
