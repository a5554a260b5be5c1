/* The ranges are made by a sweep over the addresses from low to high. A binary heap holds the modules that begin at
 * or before the current address. On top is the one that was seen last. A module that has ended is removed when it
 * comes to the top. So the time is n log n for n modules, however they overlap. */
#include "model/module_map.h"

#include "base/memory.h"

#include <stdlib.h>

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

/* An address at which a module begins or ends. */
struct edge {
    uint64_t address;
    uint32_t module;
    bool begins;
};

struct sweep {
    const struct model *model;
    struct edge *edges;
    size_t edge_count;
    uint32_t *heap;
    size_t heap_size;
    struct module_range *ranges;
    size_t range_count;
};

static const struct model_module *module_of(const struct sweep *sweep, uint32_t number) {
    return &sweep->model->modules[number];
}

static bool is_later(const struct sweep *sweep, uint32_t a, uint32_t b) {
    uint64_t x = module_of(sweep, a)->first_seen, y = module_of(sweep, b)->first_seen;
    return x != y ? x > y : a > b;
}

static void swap(uint32_t *a, uint32_t *b) {
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void heap_push(struct sweep *sweep, uint32_t module) {
    uint32_t *heap = sweep->heap;
    size_t at = sweep->heap_size++;
    heap[at] = module;
    for (; at && is_later(sweep, heap[at], heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&heap[at], &heap[(at - 1) / 2]);
}

static void heap_pop(struct sweep *sweep) {
    uint32_t *heap = sweep->heap;
    heap[0] = heap[--sweep->heap_size];
    for (size_t at = 0, child; (child = 2 * at + 1) < sweep->heap_size; at = child) {
        if (child + 1 < sweep->heap_size && is_later(sweep, heap[child + 1], heap[child])) child++;
        if (!is_later(sweep, heap[child], heap[at])) break;
        swap(&heap[at], &heap[child]);
    }
}

static int compare_edges(const void *a, const void *b) {
    uint64_t x = ((const struct edge *)a)->address, y = ((const struct edge *)b)->address;
    return (x > y) - (x < y);
}

static void add_range(struct sweep *sweep, uint32_t process, uint64_t start, uint32_t module) {
    const struct module_range *last = sweep->range_count ? &sweep->ranges[sweep->range_count - 1] : NULL;
    if (last && last->process == process && last->module == module) return;
    sweep->ranges[sweep->range_count++] = (struct module_range){start, process, module};
}

static void sweep_process(struct sweep *sweep, uint32_t process) {
    if (sweep->edge_count) qsort(sweep->edges, sweep->edge_count, sizeof *sweep->edges, compare_edges);
    sweep->heap_size = 0;
    for (size_t i = 0; i < sweep->edge_count;) {
        uint64_t address = sweep->edges[i].address;
        for (; i < sweep->edge_count && sweep->edges[i].address == address; i++)
            if (sweep->edges[i].begins) heap_push(sweep, sweep->edges[i].module);
        while (sweep->heap_size && module_of(sweep, sweep->heap[0])->end <= address) heap_pop(sweep);
        add_range(sweep, process, address, sweep->heap_size ? sweep->heap[0] : MODULE_RANGE_NONE);
    }
    sweep->edge_count = 0;
}

void module_map_make(struct model *model) {
    size_t count = model->module_count;
    struct sweep sweep = {.model = model,
        .edges = memory_allocate_array(2 * count + 1, sizeof *sweep.edges),
        .heap = memory_allocate_array(count + 1, sizeof *sweep.heap),
        .ranges = memory_allocate_array(2 * count + 1, sizeof *sweep.ranges)};
    for (size_t i = 0; i < count; i++) {
        const struct model_module *module = &model->modules[i];
        if (i && module[-1].process != module->process) sweep_process(&sweep, module[-1].process);
        if (module->by_number) continue;
        sweep.edges[sweep.edge_count++] = (struct edge){module->start, (uint32_t)i, true};
        sweep.edges[sweep.edge_count++] = (struct edge){module->end, (uint32_t)i, false};
    }
    if (count) sweep_process(&sweep, model->modules[count - 1].process);
    free(sweep.edges);
    free(sweep.heap);
    model->module_ranges = sweep.ranges;
    model->module_range_count = sweep.range_count;
}

const struct model_module *module_map_find(const struct model *model, uint32_t process, uint64_t address) {
    size_t low = 0, high = model->module_range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct module_range *range = &model->module_ranges[middle];
        if (range->process < process || (range->process == process && range->start <= address))
            low = middle + 1;
        else
            high = middle;
    }
    const struct module_range *found = low ? &model->module_ranges[low - 1] : NULL;
    if (!found || found->process != process || found->module == MODULE_RANGE_NONE) return NULL;
    return &model->modules[found->module];
}

void module_map_sort(struct model *model) {
    if (model->module_count == 0) return;
    qsort(model->modules, model->module_count, sizeof *model->modules, compare_modules);
    for (size_t i = 0; i < model->module_count; i++) model->numbered[i] = &model->modules[i];
    qsort(model->numbered, model->module_count, sizeof *model->numbered, compare_numbers);
    module_map_make(model);
}

const struct model_module *module_map_find_number(
    const struct model *model, uint32_t process, uint32_t number) {
    const struct model_module wanted = {.process = process, .number = number}, *key = &wanted;
    if (!model->module_count) return NULL;
    const struct model_module **found =
        bsearch(&key, model->numbered, model->module_count, sizeof *model->numbered, compare_numbers);
    return found ? *found : NULL;
}
