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

static void sum_up(struct model_builder *builder) {
    struct model *model = builder->model;
    struct figures *sum = &model->totals.sum;
    figures_clear(sum);
    for (size_t i = 0; i < model->stack_count; i++) {
        struct model_stack *stack = &model->stacks[i];
        stack->frames = model->frame_store + builder->frame_starts[i];
        figures_add(sum, &stack->figures);
    }
    /* The header of a running program is copied before its stacks, which may have grown past the peak in it. */
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
