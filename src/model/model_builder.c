#include "model/model_builder.h"

#include "base/memory.h"
#include "model/module_map.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WARNINGS_SHOWN 20

void model_builder_warn(struct model_builder *builder, const char *format, ...) {
    if (builder->warning_count++ > WARNINGS_SHOWN) return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* A path may hold line breaks: what follows one would look like a sentence of its own. */
    for (char *end = line; (end = strchr(end, '\n'));) *end = '?';

    char *former = builder->model->warning;
    if (builder->warning_count > WARNINGS_SHOWN) snprintf(line, sizeof line, "there is more of this kind");
    builder->model->warning = memory_format_text("%s%s%s", former ? former : "", former ? "\n" : "", line);
    free(former);
}

/* Asks for large pages. The model of a million stacks has hundreds of thousands of small pages, and the first
 * access to each costs more than all that is done with it. The request covers the whole mapping of the array, so
 * that it stays one mapping, which realloc can move without copying. */
static void use_large_pages(void *array, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), least = (uintptr_t)8 << 20;
    uintptr_t start = (uintptr_t)array & ~(page - 1), end = ((uintptr_t)array + size) & ~(page - 1);
    if (size >= least) madvise((void *)start, end - start + page, MADV_HUGEPAGE);
}

void model_builder_grow(void *array, size_t *capacity, size_t used, size_t count, size_t element_size) {
    void **pointer = array;
    if (*pointer && *capacity - used >= count) return;
    size_t wanted = used + count + used / 2 + 16;
    *pointer = memory_reallocate_array(*pointer, wanted, element_size);
    use_large_pages(*pointer, wanted * element_size);
    *capacity = wanted;
}

/* A process begins or ends. */
struct turn {
    double time; /* ns since the epoch */
    int change;  /* 1 or -1 */
};

/* A process that ends at the moment at which another begins has ended before. */
static int compare_turns(const void *a, const void *b) {
    const struct turn *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->change - y->change;
}

static size_t count_at_once(const struct model *model) {
    struct turn *turns = memory_allocate_array(2 * model->process_count + 1, sizeof *turns);
    for (size_t i = 0; i < model->process_count; i++) {
        const struct model_process *process = &model->processes[i];
        double start = (double)process->start_realtime, begin = start + (double)process->first_thread;
        turns[2 * i] = (struct turn){begin, 1};
        turns[2 * i + 1] = (struct turn){fmax(start + 1e9 * process->duration, begin + 1), -1};
    }
    qsort(turns, 2 * model->process_count, sizeof *turns, compare_turns);
    size_t running = 0, most = 0;
    for (size_t i = 0; i < 2 * model->process_count; i++) {
        running += (size_t)turns[i].change;
        if (running > most) most = running;
    }
    free(turns);
    return most;
}

/* In exact recordings each free of a block that is not known is counted. In sampled ones all frees are counted, and
 * those of blocks that were allocated meanwhile are estimated, as their allocations are: the rest were of older blocks.
 * The samples of live and of freed blocks are different ones, so their variances add up to that of all. */
static void estimate_older_frees(struct model *model) {
    struct totals *totals = &model->totals;
    const struct figures *sum = &totals->sum;
    for (size_t i = 0; i < model->process_count; i++)
        if (!model->processes[i].attached) totals->frees = 0;
    if (!totals->frees) return;
    totals->older_frees.value = (double)totals->unknown_frees;
    if (model->exact) return;
    totals->older_frees.value = fmax(0, (double)totals->frees - sum->freed_objects);
    totals->older_frees.variance = fmax(0, sum->total_objects.variance - sum->live_objects.variance);
}

/* Where the program has called an allocation function: the leaf of a stack. */
struct leaf {
    uint64_t frame;
    uint32_t process;
    bool is_live;
};

/* Of equal leaves, a live one comes first. */
static int by_leaf(const void *left, const void *right) {
    const struct leaf *a = left, *b = right;
    if (a->process != b->process) return a->process < b->process ? -1 : 1;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    return (int)b->is_live - (int)a->is_live;
}

static void count_call_sites(struct model *model) {
    struct leaf *leaves = memory_allocate_array(model->stack_count + 1, sizeof *leaves);
    size_t count = 0;
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (stack->frame_count == 0 || !(stack->figures.total_objects.value > 0)) continue;
        leaves[count++] =
            (struct leaf){stack->frames[0], stack->process, stack->figures.live_objects.value > 0};
    }
    qsort(leaves, count, sizeof *leaves, by_leaf);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && leaves[i].process == leaves[i - 1].process && leaves[i].frame == leaves[i - 1].frame)
            continue;
        model->totals.call_sites++;
        if (leaves[i].is_live) model->totals.active_call_sites++;
    }
    free(leaves);
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
    model->totals.peak_objects = sum->at_peak_objects.value;
    estimate_older_frees(model);
    count_call_sites(model);
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
    model->totals.processes_at_once = count_at_once(model);
    unrecorded_list_sort(&model->unrecorded);
    module_map_sort(model);
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
