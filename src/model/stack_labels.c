#include "model/stack_labels.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const struct model *model, const struct model_stack *stack, uint32_t frame) {
    const char *name = model_find_text(model, stack->process, stack->frames[frame] & FRAME_VALUE_MASK);
    return name ? name : LABEL_LOST;
}

struct stack_labels stack_labels_of(const struct model *model, const struct model_stack *stack) {
    struct stack_labels labels = {.heap = HEAP_MALLOC, .type = stack->type};
    if (stack->heap < model->heap_count) labels.heap = model->heaps[stack->heap].name;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        uint64_t kind = stack->frames[i] >> FRAME_KIND_SHIFT;
        if (kind == FRAME_SCOPE && !labels.scope) labels.scope = name_of(model, stack, i);
        if (kind == FRAME_THREAD && !labels.thread) labels.thread = name_of(model, stack, i);
    }
    return labels;
}

static int compare_texts(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static size_t count_distinct(const char **texts, size_t count) {
    size_t distinct = 0;
    if (count) qsort(texts, count, sizeof *texts, compare_texts);
    for (size_t i = 0; i < count; i++) distinct += i == 0 || strcmp(texts[i - 1], texts[i]) != 0;
    return distinct;
}

/* Counts all scopes of a stack, not only the innermost one. */
void stack_labels_count(const struct model *model, struct label_counts *ret_counts) {
    size_t frames = 0;
    for (size_t i = 0; i < model->stack_count; i++) frames += model->stacks[i].frame_count;
    const char **types = memory_allocate_array(model->stack_count + 1, sizeof *types);
    const char **scopes = memory_allocate_array(frames + 1, sizeof *scopes);
    const char **threads = memory_allocate_array(frames + 1, sizeof *threads);
    size_t type_count = 0, scope_count = 0, thread_count = 0;
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        if (stack->type) types[type_count++] = stack->type;
        for (uint32_t k = 0; k < stack->frame_count; k++) {
            uint64_t kind = stack->frames[k] >> FRAME_KIND_SHIFT;
            if (kind == FRAME_SCOPE) scopes[scope_count++] = name_of(model, stack, k);
            if (kind == FRAME_THREAD) threads[thread_count++] = name_of(model, stack, k);
        }
    }
    *ret_counts = (struct label_counts){count_distinct(types, type_count),
        count_distinct(scopes, scope_count), count_distinct(threads, thread_count)};
    free(types);
    free(scopes);
    free(threads);
}
