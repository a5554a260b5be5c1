/* Which module an address lay in, where several have been at the same place one after the other: the one that
 * was seen last. Found in a few steps, however many there are and however they overlap. */
#ifndef MALLOSCOPE_MODEL_MODULE_MAP_H
#define MALLOSCOPE_MODEL_MODULE_MAP_H

#include "model/model.h"

/* From `start` on, up to the next range, addresses of `process` lie in modules[module]; MODULE_RANGE_NONE: in
 * none. */
struct module_range {
    uint64_t start;
    uint32_t process, module;
};
#define MODULE_RANGE_NONE UINT32_MAX

/* Sorts `modules`, and fills `numbered` and the ranges in. */
void module_map_sort(struct model *model);

/* Fills the ranges in from modules that are sorted. */
void module_map_make(struct model *model);

/* The module that frames of `process` name by this number, or NULL. */
const struct model_module *module_map_find_number(
    const struct model *model, uint32_t process, uint32_t number);

/* NULL if it lies in none. */
const struct model_module *module_map_find(const struct model *model, uint32_t process, uint64_t address);

#endif
