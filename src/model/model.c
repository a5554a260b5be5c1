#include "model/model.h"

#include "model/module_map.h"

#include <stdlib.h>

const struct model_module *model_find_module(const struct model *model, uint32_t process, uint64_t address) {
    return module_map_find(model, process, address);
}

/* The place at an offset into the file of a module that frames name by its number. */
static struct model_place find_by_number(
    const struct model *model, uint32_t process, uint32_t number, uint64_t offset) {
    const struct model_module *module = module_map_find_number(model, process, number);
    if (!module || offset - module->file_offset > module->end - module->start) return (struct model_place){0};
    return (struct model_place){module, module->start + (offset - module->file_offset)};
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
    unrecorded_list_free(&model->unrecorded);
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

int64_t model_user(const struct model *model) {
    for (size_t i = 1; i < model->process_count; i++)
        if (model->processes[i].user != model->processes[0].user) return -1;
    return model->process_count ? model->processes[0].user : -1;
}
