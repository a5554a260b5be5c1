#include "symbol/archived_names.h"

#include "base/memory.h"
#include "symbol/symbol_store.h"

#include <stdlib.h>

struct archived_names {
    const struct model *model;
    struct result_pool *pool;
    struct symbol_store *stores; /* one for each of model->names; empty if that one is damaged */
    const char *warning;
};

struct archived_names *archived_names_new(const struct model *model, struct result_pool *pool) {
    struct archived_names *names = memory_allocate(sizeof *names);
    *names = (struct archived_names){
        model, pool, memory_allocate_array(model->names_count + 1, sizeof *names->stores), NULL};
    for (size_t i = 0; i < model->names_count; i++) {
        const struct model_names *source = &model->names[i];
        if (symbol_store_open(&names->stores[i], source->bytes, source->size)) continue;
        names->warning = result_pool_format(pool,
            "%s%sthe names in the archive '%s' cannot be read: names are looked up here",
            names->warning ? names->warning : "", names->warning ? "\n" : "",
            result_pool_line(pool, source->path));
    }
    return names;
}

void archived_names_free(struct archived_names *names) {
    free(names->stores);
    free(names);
}

static const struct model_process *process_with_names(const struct model *model, uint32_t process) {
    return process < model->process_count && model->processes[process].has_names ? &model->processes[process]
                                                                                 : NULL;
}

bool archived_names_find(
    const struct archived_names *names, uint32_t process, uint64_t word, struct symbol_list *list) {
    const struct model_process *owner = process_with_names(names->model, process);
    if (!owner) return false;
    const struct symbol_store *store = &names->stores[owner->names];
    const struct store_entry *entry = symbol_store_find(store, owner->names_space, word);
    if (!entry) return false;
    *list = (struct symbol_list){.frames = symbol_store_frames(store, entry, names->pool),
        .count = entry->frame_count,
        .module_address = entry->module_address};
    return true;
}

const char *archived_names_of(const struct archived_names *names, const struct model_module *module) {
    const struct model_process *owner = process_with_names(names->model, module->process);
    if (!owner) return NULL;
    uint64_t first = module->start + 1, last = module->end;
    if (module->by_number) {
        first = (uint64_t)FRAME_MODULE << FRAME_KIND_SHIFT | (uint64_t)module->number << FRAME_MODULE_SHIFT;
        last = first | FRAME_OFFSET_MASK;
    }
    const struct store_entry *entry =
        symbol_store_next(&names->stores[owner->names], owner->names_space, first);
    return entry && entry->key <= last ? names->model->names[owner->names].path : NULL;
}

const char *archived_names_warning(const struct archived_names *names) {
    return names->warning;
}
