/* From an address to its module. Several modules may have been at one address in turn, as libraries are closed and
 * others opened; then it is the one that was seen last. A look-up is a binary search over ranges that do not
 * overlap. */
#ifndef MALLOSCOPE_MODEL_MODULE_MAP_H
#define MALLOSCOPE_MODEL_MODULE_MAP_H

#include "model/model.h"

/* Addresses of `process` from `start` up to the next range lie in modules[module], or in none: MODULE_RANGE_NONE. */
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

/* The module that an address lies in, or NULL. Modules that frames name by number are not considered. */
const struct model_module *module_map_find(const struct model *model, uint32_t process, uint64_t address);

#endif
