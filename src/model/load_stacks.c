/* Stacks and their figures.
 *
 * What a stack has allocated and freed comes from its record; how certain its live figures are comes from the
 * live samples themselves: a sample of size s and weight w = s/p adds w(w - s) to the variance of the live
 * bytes and n(n - 1) with n = w/s to that of the objects (docs/sampling.md). */
#include "core/sampler.h"
#include "model/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A record that has figures, and the stack of the model that it became part of. */
struct loaded {
    const struct stack_record *record;
    uint32_t heap; /* of the model */
    const uint64_t *frames;
    uint64_t number;
    size_t stack;
};

static double bytes_of(uint64_t fixed) {
    return (double)fixed / BYTE_ONE;
}
static double objects_of(uint64_t fixed) {
    return (double)fixed / OBJECT_ONE;
}
static uint64_t difference(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}
static double share(double part, double whole) {
    return whole > 0 ? fmin(part / whole, 1) : 0;
}

static double variance_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value > 0 && isfinite(value) ? value : 0;
}

static void read_figures(const struct recording_header *header, const struct stack_record *record,
    uint64_t rate, struct figures *figures) {
    bool exact = rate == 1;
    uint64_t live_bytes = difference(record->alloc_bytes, record->freed_bytes);
    uint64_t live_objects = difference(record->alloc_objects, record->freed_objects);
    /* Since the header was read a later peak may have been noted: its saved figures are then the nearer ones.
     */
    bool saved = record->peak_epoch >= header->peak_epoch;

    figures_clear(figures);
    uint64_t alloc_bytes = difference(record->alloc_bytes, record->inherited_bytes);
    uint64_t alloc_objects = difference(record->alloc_objects, record->inherited_objects);
    figures->total_bytes.value = bytes_of(alloc_bytes);
    figures->total_objects.value = objects_of(alloc_objects);
    figures->inherited_bytes = bytes_of(record->inherited_bytes);
    if (!exact) {
        figures->total_bytes.variance = variance_of(record->bytes_variance);
        figures->total_objects.variance = variance_of(record->objects_variance);
        /* The chance that b bytes of small blocks are not sampled is exp(-b / rate): 5 % at 3 rates. */
        double unseen = 3 * (double)rate;
        figures->total_bytes.unseen = figures->live_bytes.unseen = figures->at_peak_bytes.unseen = unseen;
    }
    figures->live_bytes.value = bytes_of(live_bytes);
    figures->live_objects.value = objects_of(live_objects);
    figures->freed_bytes = bytes_of(record->freed_bytes);
    figures->freed_objects = objects_of(record->freed_objects);
    figures->peak_bytes = fmax(bytes_of(record->peak_bytes), figures->live_bytes.value);
    figures->peak_objects = fmax(objects_of(record->peak_objects), figures->live_objects.value);
    figures->at_peak_bytes.value = bytes_of(saved ? record->saved_bytes : live_bytes);
    figures->at_peak_objects.value = objects_of(saved ? record->saved_objects : live_objects);
    figures->at_peak_bytes.variance =
        figures->total_bytes.variance * share(figures->at_peak_bytes.value, figures->total_bytes.value);
    figures->at_peak_objects.variance =
        figures->total_objects.variance * share(figures->at_peak_objects.value, figures->total_objects.value);
    figures->temporary_bytes = bytes_of(record->temporary_bytes);
    figures->samples = exact ? alloc_objects / OBJECT_ONE : record->samples;
    figures->sampled_bytes = exact ? bytes_of(alloc_bytes) : (double)record->sampled_bytes;
    for (int i = 0; i < LIFETIME_BUCKETS; i++) {
        figures->lifetime[i] = objects_of(record->lifetime[i]);
        if (i < TEMPORARY_BUCKETS) figures->temporary_objects += figures->lifetime[i];
    }
}

/* Of the last process. What belongs to no heap that can be read counts as malloc's. */
static size_t find_heap(const struct model *model, uint32_t number, uint64_t *strangers) {
    size_t first = model->processes[model->process_count - 1].first_heap;
    for (size_t i = first; i < model->heap_count; i++)
        if (model->heaps[i].number == number) return i;
    ++*strangers;
    return first;
}

/* The records that have figures and frames that can be read, by number. */
static bool collect(struct builder *builder, const struct snapshot *snapshot, const char *path,
    struct loaded **ret_list, size_t *ret_count) {
    struct loaded *list = NULL;
    size_t count = 0, capacity = 0;
    uint64_t unreadable = 0, strangers = 0;
    /* Frames are not shared between stacks, so all of them fit the file. */
    uint64_t frames_left = snapshot->size / sizeof(uint64_t);
    struct table_cursor cursor = {0};
    for (const struct stack_record *record; (record = snapshot_next(snapshot, &snapshot->stacks, &cursor));) {
        if (record->alloc_objects == 0 && record->alloc_bytes == 0 && record->samples == 0) continue;
        uint64_t frames = record->frame_count;
        if (frames && (frames > frames_left || record->frames % sizeof(uint64_t) != 0 ||
                          !snapshot_has(snapshot, record->frames, frames * sizeof(uint64_t)))) {
            unreadable++;
            continue;
        }
        frames_left -= frames;
        if (!builder_grow(&list, &capacity, count, 1, sizeof *list)) {
            free(list);
            return false;
        }
        list[count++] = (struct loaded){.record = record,
            .heap = (uint32_t)find_heap(builder->model, record->heap, &strangers),
            .frames = frames ? (const uint64_t *)(snapshot->bytes + record->frames) : NULL,
            .number = cursor.number};
    }
    if (unreadable)
        builder_warn_damage(builder, "'%s' is damaged: %llu stacks whose frames cannot be read are left out",
            path, (unsigned long long)unreadable);
    if (strangers)
        builder_warn_damage(builder,
            "'%s' is damaged: the heap of %llu stacks cannot be read; they are shown as malloc's", path,
            (unsigned long long)strangers);
    *ret_list = list;
    *ret_count = count;
    return true;
}

static int compare_frames(const struct loaded *a, const struct loaded *b) {
    uint32_t x = a->record->frame_count, y = b->record->frame_count;
    if (x != y) return x < y ? -1 : 1;
    if (a->record->heap != b->record->heap) return a->record->heap < b->record->heap ? -1 : 1;
    if (a->record->type != b->record->type) return a->record->type < b->record->type ? -1 : 1;
    return x ? memcmp(a->frames, b->frames, x * sizeof *a->frames) : 0;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const struct loaded *)a)->number, y = ((const struct loaded *)b)->number;
    return (x > y) - (x < y);
}

static int by_frames(const void *a, const void *b) {
    int order = compare_frames(a, b);
    return order ? order : by_number(a, b);
}

/* A new stack of the model with the frames of `loaded` and no figures. */
static struct model_stack *add_stack(struct builder *builder, const struct loaded *loaded) {
    struct model *model = builder->model;
    uint32_t frames = loaded->record->frame_count;
    if (!builder_grow(
            &model->stacks, &builder->stack_capacity, model->stack_count, 1, sizeof *model->stacks) ||
        !builder_grow(&builder->frame_starts, &builder->frame_start_capacity, model->stack_count, 1,
            sizeof *builder->frame_starts) ||
        !builder_grow(&model->frame_store, &builder->frame_capacity, builder->frame_count, frames,
            sizeof *model->frame_store))
        return NULL;
    builder->frame_starts[model->stack_count] = builder->frame_count;
    if (frames)
        memcpy(model->frame_store + builder->frame_count, loaded->frames, frames * sizeof *loaded->frames);
    builder->frame_count += frames;

    struct model_stack *stack = &model->stacks[model->stack_count++];
    uint32_t process = (uint32_t)model->process_count - 1;
    *stack = (struct model_stack){.frame_count = frames,
        .flags = loaded->record->flags,
        .process = process,
        .heap = loaded->heap,
        .in_own_heap = model->heaps[loaded->heap].number != 0,
        .type = model_find_text(model, process, loaded->record->type)};
    figures_clear(&stack->figures);
    return stack;
}

/* Makes one stack of all records that are equal. */
static bool merge(
    struct builder *builder, const struct recording_header *header, struct loaded *list, size_t count) {
    struct model *model = builder->model;
    if (count) qsort(list, count, sizeof *list, by_frames);
    struct model_stack *stack = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct stack_record *record = list[i].record;
        if (i == 0 || compare_frames(&list[i - 1], &list[i]) != 0) stack = add_stack(builder, &list[i]);
        if (!stack) return false;
        struct figures figures;
        read_figures(header, record, model->heaps[list[i].heap].rate, &figures);
        figures_add(&stack->figures, &figures);
        stack->flags &= record->flags | ~(uint32_t)STACK_COMPLETE;
        stack->flags |= record->flags & STACK_CUT;
        list[i].stack = model->stack_count - 1;

        bool whole = (record->flags & STACK_COMPLETE) && !(record->flags & STACK_CUT);
        if (!whole) model->health.truncated += figures.samples;
        builder->depth_sum += (double)figures.samples * record->frame_count;
    }
    return true;
}

static void add_live_sample(struct figures *figures, const struct live_entry *entry, uint64_t rate) {
    double size = (double)entry->size, weight = bytes_of(sampler_weight(entry->size, rate));
    figures->live_samples++;
    figures->sampled_live_bytes += size;
    if (entry->birth < figures->oldest) figures->oldest = entry->birth;
    if (weight <= size) return;
    figures->live_bytes.variance += weight * (weight - size);
    double objects = weight / size * entry->count;
    if (size > 0) figures->live_objects.variance += objects * (objects - entry->count);
}

/* Where the counters, which count all that is live, cannot be used. */
static void add_live_figures(struct figures *figures, const struct live_entry *entry, uint64_t rate) {
    uint64_t weight = sampler_weight(entry->size, rate);
    figures->live_bytes.value += bytes_of(weight);
    figures->live_objects.value += objects_of(sampler_objects(entry->size, weight)) * entry->count;
}

/* `list` is sorted by number. */
static void read_live(struct builder *builder, const struct snapshot *snapshot, const char *path,
    const struct loaded *list, size_t count) {
    uint64_t strangers = 0;
    struct model *model = builder->model;
    struct table_cursor cursor = {0};
    for (const struct live_entry *entry; (entry = snapshot_next(snapshot, &snapshot->live, &cursor));) {
        if (!(entry->key & LIVE_KEY_MASK) || entry->birth > builder->until) continue;
        struct loaded wanted = {.number = entry->stack};
        const struct loaded *found = count ? bsearch(&wanted, list, count, sizeof *list, by_number) : NULL;
        if (found) {
            struct figures *figures = &model->stacks[found->stack].figures;
            uint64_t rate = model->heaps[found->heap].rate;
            add_live_sample(figures, entry, rate);
            if (builder->until != UINT64_MAX) add_live_figures(figures, entry, rate);
        } else if (entry->stack >= snapshot->stacks.count)
            strangers++;
    }
    if (strangers)
        builder_warn_damage(builder, "'%s' is damaged: %llu live samples belong to no stack", path,
            (unsigned long long)strangers);
}

/* Where no live sample was found for what the counters say is live (it came or went during the reading, or
 * the live table is damaged), the share of the total variance stands in: no figure looks more certain than it
 * is. */
static void complete_variance(struct figures *figures) {
    if (figures->live_samples) return;
    figures->live_bytes.variance =
        figures->total_bytes.variance * share(figures->live_bytes.value, figures->total_bytes.value);
    figures->live_objects.variance =
        figures->total_objects.variance * share(figures->live_objects.value, figures->total_objects.value);
}

bool load_stacks(struct builder *builder, const struct snapshot *snapshot, const char *path) {
    struct model *model = builder->model;
    size_t first = model->stack_count, count = 0;
    struct loaded *list = NULL;
    bool whole = collect(builder, snapshot, path, &list, &count) &&
                 merge(builder, snapshot_header(snapshot), list, count);
    if (whole && count) qsort(list, count, sizeof *list, by_number);
    for (size_t i = first; whole && builder->until != UINT64_MAX && i < model->stack_count; i++)
        model->stacks[i].figures.live_bytes.value = model->stacks[i].figures.live_objects.value = 0;
    if (whole) read_live(builder, snapshot, path, list, count);
    for (size_t i = first; i < model->stack_count; i++) complete_variance(&model->stacks[i].figures);
    free(list);
    return whole;
}
