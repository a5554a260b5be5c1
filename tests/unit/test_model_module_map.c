/* The module of an address, among modules that overlap in every way: the one that a search through all would find. */
#include "check.h"
#include "model/module_map.h"

#include <stdlib.h>

#define MODULES 60

static uint64_t state = 88172645463325252;

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* In the order of the model: by process and start. */
static const struct model_module *look(const struct model *model, uint32_t process, uint64_t address) {
    const struct model_module *latest = NULL;
    for (size_t i = 0; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        if (module->process != process || module->by_number) continue;
        if (address < module->start || address >= module->end) continue;
        if (!latest || module->first_seen >= latest->first_seen) latest = module;
    }
    return latest;
}

static int by_place(const void *a, const void *b) {
    const struct model_module *x = a, *y = b;
    if (x->process != y->process) return x->process < y->process ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->first_seen > y->first_seen) - (x->first_seen < y->first_seen);
}

static void finds_what_was_there_last(void) {
    struct model_module modules[MODULES];
    struct model model = {.modules = modules};
    model.module_count = draw(MODULES + 1);
    for (size_t i = 0; i < model.module_count; i++) {
        uint64_t start = draw(100);
        modules[i] = (struct model_module){.process = (uint32_t)draw(3) * 2,
            .start = start,
            .end = start + 1 + draw(60),
            .first_seen = draw(10),
            .by_number = draw(5) == 0};
    }
    if (model.module_count) qsort(modules, model.module_count, sizeof *modules, by_place);
    module_map_make(&model);
    for (uint32_t process = 0; process < 6; process++)
        for (uint64_t address = 0; address < 170; address++)
            if (!CHECK(module_map_find(&model, process, address) == look(&model, process, address))) return;
    free(model.module_ranges);
}

int main(void) {
    for (int i = 0; i < 300; i++) finds_what_was_there_last();
    return check_result();
}
