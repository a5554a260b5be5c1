#include "model/heap_totals.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static int compare_heaps(const void *left, const void *right) {
    const char *a = ((const struct heap_totals *)left)->name, *b = ((const struct heap_totals *)right)->name;
    bool is_malloc = strcmp(a, HEAP_MALLOC) == 0, other_is = strcmp(b, HEAP_MALLOC) == 0;
    return is_malloc != other_is ? other_is - is_malloc : strcmp(a, b);
}

struct heap_totals *heap_totals_make(const struct model *model, size_t *ret_count) {
    struct heap_totals *heaps = memory_allocate_array(model->heap_count + 1, sizeof *heaps);
    for (size_t i = 0; i < model->heap_count; i++) {
        heaps[i] = (struct heap_totals){.name = model->heaps[i].name, .rate = model->heaps[i].rate};
        figures_clear(&heaps[i].figures);
    }
    for (size_t i = 0; i < model->stack_count; i++)
        if (model->stacks[i].heap < model->heap_count)
            figures_add(&heaps[model->stacks[i].heap].figures, &model->stacks[i].figures);
    qsort(heaps, model->heap_count, sizeof *heaps, compare_heaps);
    size_t count = 0;
    for (size_t i = 0; i < model->heap_count; i++) {
        struct heap_totals *last = count ? &heaps[count - 1] : NULL;
        if (!last || strcmp(last->name, heaps[i].name) != 0) {
            heaps[count++] = heaps[i];
            continue;
        }
        figures_add(&last->figures, &heaps[i].figures);
        if (heaps[i].rate > last->rate) last->rate = heaps[i].rate;
    }
    /* The sum of the stacks' own peaks is an upper bound, and so is the peak of all heaps together. */
    for (size_t i = 0; i < count && model->totals.peak_at_most > 0; i++)
        if (heaps[i].figures.own_peak_bytes > model->totals.peak_at_most)
            heaps[i].figures.own_peak_bytes = model->totals.peak_at_most;
    *ret_count = count;
    return heaps;
}
