/* The stacks of a recording and their figures.
 *
 * What a stack has allocated and freed comes from its record. The variance of its live figures comes from its live
 * samples: a sample of size s, of c objects, that was taken with probability p stands for w = s/p bytes and n = c/p
 * objects. It adds w(w − s) to the variance of the live bytes and n(n − c) to that of the live objects
 * (docs/sampling.md). */
#include "base/confidence_interval.h"
#include "base/hash_index.h"
#include "core/sampler.h"
#include "model/load_recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The most frames of a stack that are believed. A recorder keeps at most 4,096 native frames, as many of an
 * interpreter, and scopes. The bound limits the depth of call trees. */
#define FRAMES_MOST 16384u

/* A record of the recording that has figures. */
struct loaded {
    const struct stack_record *record;
    uint32_t heap; /* index into model.heaps */
    uint32_t frame_count, type;
    const uint64_t *frames;
    uint64_t number;
    uint64_t hash;
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
    uint64_t live_bytes = difference(record->alloc_bytes, stack_freed_bytes(record));
    uint64_t live_objects = difference(record->alloc_objects, record->freed_objects);
    /* peak_epoch of the record may be the later one: since the header was copied, the heap may have had a new peak.
     * The figures that were saved for it are nearer to the header's peak than the live ones. */
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
        figures->total_bytes.unseen = figures->live_bytes.unseen = figures->at_peak_bytes.unseen =
            confidence_interval_unseen(rate);
    }
    figures->live_bytes.value = bytes_of(live_bytes);
    figures->live_objects.value = objects_of(live_objects);
    figures->freed_bytes = bytes_of(stack_freed_bytes(record));
    figures->freed_objects = objects_of(record->freed_objects);
    figures->own_peak_bytes = fmax(bytes_of(record->peak_bytes), figures->live_bytes.value);
    figures->own_peak_objects = fmax(objects_of(record->peak_objects), figures->live_objects.value);
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

/* Index of the heap with this number of the process that was added last. If there is none, `strangers` is counted
 * up, and malloc's heap stands for it. */
static size_t find_heap(const struct model *model, uint32_t number, uint64_t *strangers) {
    size_t first = model->processes[model->process_count - 1].first_heap;
    for (size_t i = first; i < model->heap_count; i++)
        if (model->heaps[i].number == number) return i;
    ++*strangers;
    return first;
}

/* Lists the records that have figures, and frames that can be read. They are sorted by number. */
static void collect(struct model_builder *builder, const struct snapshot *snapshot, const char *path,
    struct loaded **ret_list, size_t *ret_count) {
    struct loaded *list = NULL;
    size_t count = 0, capacity = 0;
    uint64_t unreadable = 0, strangers = 0;
    /* Stacks of a sound recording do not share frames, so all frames together fit into the file. This bounds the
     * work for a hostile one. */
    uint64_t frames_left = snapshot->size / sizeof(uint64_t);
    struct table_cursor cursor = {0};
    for (const struct stack_record *record; (record = snapshot_next(snapshot, &snapshot->stacks, &cursor));) {
        if (record->alloc_objects == 0 && record->alloc_bytes == 0 && record->samples == 0) continue;
        /* Volatile: the values that are checked have to be those that are used (snapshot.h). */
        uint32_t frames = *(const volatile uint32_t *)&record->frame_count;
        uint64_t place = *(const volatile uint64_t *)&record->frames;
        if (frames && (frames > FRAMES_MOST || frames > frames_left || place % sizeof(uint64_t) != 0 ||
                          !snapshot_has(snapshot, place, frames * sizeof(uint64_t)))) {
            unreadable++;
            continue;
        }
        frames_left -= frames;
        model_builder_grow(&list, &capacity, count, 1, sizeof *list);
        list[count++] = (struct loaded){.record = record,
            .heap = (uint32_t)find_heap(builder->model, record->heap, &strangers),
            .frame_count = frames,
            .type = record->type,
            .frames = frames ? (const uint64_t *)(snapshot->bytes + place) : NULL,
            .number = cursor.number};
    }
    if (unreadable)
        model_builder_warn_damage(builder,
            "'%s' is damaged: %llu stacks whose frames cannot be read are left out", path,
            (unsigned long long)unreadable);
    if (strangers)
        model_builder_warn_damage(builder,
            "'%s' is damaged: the heap of %llu stacks cannot be read; they are shown as malloc's", path,
            (unsigned long long)strangers);
    *ret_list = list;
    *ret_count = count;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const struct loaded *)a)->number, y = ((const struct loaded *)b)->number;
    return (x > y) - (x < y);
}

/* Adds a stack to the model, with the frames of the record and without figures. */
static struct model_stack *add_stack(struct model_builder *builder, const struct loaded *loaded) {
    struct model *model = builder->model;
    uint32_t frames = loaded->frame_count;
    model_builder_grow(
        &model->stacks, &builder->stack_capacity, model->stack_count, 1, sizeof *model->stacks);
    model_builder_grow(&builder->frame_starts, &builder->frame_start_capacity, model->stack_count, 1,
        sizeof *builder->frame_starts);
    model_builder_grow(&model->frame_store, &builder->frame_capacity, builder->frame_count, frames,
        sizeof *model->frame_store);
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
        .type = model_find_text(model, process, loaded->type)};
    figures_clear(&stack->figures);
    return stack;
}

/* A random key of this run of the tool. Without it, somebody could write a recording whose stacks all have one
 * hash, and reading it would take for ever. */
static uint64_t hash_key(void) {
    static uint64_t key;
    if (!key && getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key) key = (uintptr_t)&key;
    return key |= 1;
}

static uint64_t mix(uint64_t hash, uint64_t word, uint64_t key) {
    __extension__ unsigned __int128 product = (unsigned __int128)(hash ^ word) * key;
    return (uint64_t)product ^ (uint64_t)(product >> 64) ^ key;
}

static uint64_t hash_stack(const struct loaded *loaded) {
    uint64_t key = hash_key();
    uint64_t hash = mix(key, (uint64_t)loaded->type << 32 | loaded->frame_count, key);
    for (uint32_t i = 0; i < loaded->frame_count; i++) hash = mix(hash, loaded->frames[i], key);
    return hash;
}

struct search {
    const struct model_builder *builder;
    const struct loaded *loaded;
};

/* Whether a stack of the model, which is of the last process, equals the one that is searched for. */
static bool is_equal(const void *context, uint32_t number) {
    const struct search *search = context;
    const struct loaded *loaded = search->loaded;
    const struct model *model = search->builder->model;
    const struct model_stack *stack = &model->stacks[number];
    const uint64_t *frames = model->frame_store + search->builder->frame_starts[number];
    uint32_t count = loaded->frame_count;
    return stack->frame_count == count && stack->heap == loaded->heap &&
           stack->type == model_find_text(model, stack->process, loaded->type) &&
           (!count || memcmp(frames, loaded->frames, count * sizeof *frames) == 0);
}

/* Computes the hash of a record that will be searched for soon, and begins to fetch its slot from memory. */
static void prepare_search(const struct hash_index *index, struct loaded *loaded) {
    loaded->hash = hash_stack(loaded);
    hash_index_prefetch(index, loaded->hash);
}

/* How many records ahead of the search their slots are fetched. */
#define AHEAD 16

/* Makes room for all records at once: arrays that grow step by step are copied again and again. */
static void make_room(struct model_builder *builder, const struct loaded *list, size_t count) {
    struct model *model = builder->model;
    size_t frames = 0;
    for (size_t i = 0; i < count; i++) frames += list[i].frame_count;
    model_builder_grow(
        &model->stacks, &builder->stack_capacity, model->stack_count, count, sizeof *model->stacks);
    model_builder_grow(&model->frame_store, &builder->frame_capacity, builder->frame_count, frames,
        sizeof *model->frame_store);
}

/* Makes one stack of all records that are equal. The stacks are in the order in which the program first allocated
 * there, so that neighbours mostly share callers, which the views make use of. */
static void merge(
    struct model_builder *builder, const struct recording_header *header, struct loaded *list, size_t count) {
    struct model *model = builder->model;
    struct hash_index index = {0};
    hash_index_reserve(&index, count);
    make_room(builder, list, count);
    for (size_t i = 0; i < count && i < AHEAD; i++) prepare_search(&index, &list[i]);
    for (size_t i = 0; i < count; i++) {
        if (count - i > AHEAD) prepare_search(&index, &list[i + AHEAD]);
        const struct stack_record *record = list[i].record;
        uint32_t number =
            hash_index_find(&index, list[i].hash, is_equal, &(struct search){builder, &list[i]});
        bool is_new = number == HASH_INDEX_NONE;
        struct model_stack *stack = is_new ? add_stack(builder, &list[i]) : &model->stacks[number];
        if (is_new) {
            number = (uint32_t)model->stack_count - 1;
            hash_index_add(&index, list[i].hash, number);
        }
        struct figures figures;
        read_figures(header, record, model->heaps[list[i].heap].rate, is_new ? &stack->figures : &figures);
        if (!is_new) figures_add(&stack->figures, &figures);
        uint64_t samples = is_new ? stack->figures.samples : figures.samples;
        stack->flags &= record->flags | ~(uint32_t)STACK_COMPLETE;
        stack->flags |= record->flags & (STACK_CUT | STACK_FOLDED);
        list[i].stack = number;

        bool whole = (record->flags & STACK_COMPLETE) && !(record->flags & STACK_CUT);
        if (!whole) model->health.truncated += samples;
        if (record->flags & STACK_FOLDED) model->health.folded += samples;
        builder->depth_sum += (double)samples * list[i].frame_count;
    }
    hash_index_free(&index);
}

/* Counts a live sample by birth and age. `now` is the moment at which the recording ends. */
static void add_live_time(struct figures *figures, uint64_t birth, uint64_t now) {
    if (birth > now) birth = now;
    if (birth < figures->oldest) figures->oldest = birth;
    double part = now ? (double)birth / (double)now * BIRTH_PARTS : 0;
    figures->births[part < BIRTH_PARTS ? (int)part : BIRTH_PARTS - 1]++;
    figures->ages[lifetime_bucket(now - birth)]++;
}

static void add_live_sample(struct figures *figures, const struct live_entry *entry, uint64_t rate) {
    double size = (double)entry->size, weight = bytes_of(sampler_weight(entry->size, rate));
    figures->live_samples++;
    figures->sampled_live_bytes += size;
    if (weight <= size) return;
    figures->live_bytes.variance += weight * (weight - size);
    double objects = weight / size * entry->count;
    if (size > 0) figures->live_objects.variance += objects * (objects - entry->count);
}

/* The bytes and objects that a live sample stands for. */
static void weigh_sample(
    uint64_t size, uint32_t count, uint64_t rate, double *ret_bytes, double *ret_objects) {
    uint64_t weight = sampler_weight(size, rate);
    *ret_bytes = bytes_of(weight);
    *ret_objects = count * objects_of(sampler_objects(size, weight));
}

void model_live_weight(
    const struct model *model, const struct model_live *live, double *ret_bytes, double *ret_objects) {
    uint64_t rate = model->heaps[model->stacks[live->stack].heap].rate;
    weigh_sample(live->size, live->count, rate, ret_bytes, ret_objects);
}

/* For figures of a moment: the counters of a stack tell what is live at the end, so what was live up to `until` is
 * added up from the samples. */
static void add_live_figures(struct figures *figures, const struct live_entry *entry, uint64_t rate) {
    double bytes, objects;
    weigh_sample(entry->size, entry->count, rate, &bytes, &objects);
    figures->live_bytes.value += bytes;
    figures->live_objects.value += objects;
}

static void list_sample(
    struct model_builder *builder, const struct live_entry *entry, const struct loaded *of) {
    struct model *model = builder->model;
    model_builder_grow(
        &model->samples, &builder->sample_capacity, model->sample_count, 1, sizeof *model->samples);
    model->samples[model->sample_count++] = (struct model_sample){.address = entry->key & LIVE_KEY_MASK,
        .size = entry->size,
        .birth = entry->birth,
        .weight = bytes_of(sampler_weight(entry->size, model->heaps[of->heap].rate)),
        .stack = (uint32_t)of->stack};
}

/* Finds a record by its number in the sorted list. Few numbers are missing, so that most records are where they
 * would be if none were. */
static const struct loaded *find_record(const struct loaded *list, size_t count, uint64_t number) {
    if (!count || number < list[0].number) return NULL;
    uint64_t guess = number - list[0].number;
    if (guess < count && list[guess].number == number) return &list[guess];
    return bsearch(&(struct loaded){.number = number}, list, count, sizeof *list, by_number);
}

/* Reads the live table, and adds each live sample to the stack of its record. */
static void read_live(struct model_builder *builder, const struct snapshot *snapshot, const char *path,
    const struct loaded *list, size_t count) {
    uint64_t now = snapshot->elapsed < builder->until ? snapshot->elapsed : builder->until;
    struct model *model = builder->model;
    uint64_t strangers = 0;
    struct table_cursor cursor = {0};
    for (const struct live_entry *entry; (entry = snapshot_next(snapshot, &snapshot->live, &cursor));) {
        if (!(entry->key & LIVE_KEY_MASK) || entry->birth > builder->until) continue;
        const struct loaded *found = find_record(list, count, entry->stack);
        if (!found) {
            strangers += entry->stack >= snapshot->stacks.count;
            continue;
        }
        struct figures *figures = &model->stacks[found->stack].figures;
        uint64_t rate = model->heaps[found->heap].rate;
        add_live_sample(figures, entry, rate);
        add_live_time(figures, entry->birth, now);
        if (builder->until != UINT64_MAX) add_live_figures(figures, entry, rate);
        model_builder_grow(&model->live, &builder->live_capacity, model->live_count, 1, sizeof *model->live);
        model->live[model->live_count++] = (struct model_live){
            (uint32_t)found->stack, (float)((double)entry->birth / 1e9), entry->size, entry->count};
        if (builder->with_samples) list_sample(builder, entry, found);
    }
    if (strangers)
        model_builder_warn_damage(builder, "'%s' is damaged: %llu live samples belong to no stack", path,
            (unsigned long long)strangers);
}

/* Sets the variance of live figures for which no live sample was found: the block came or went during the reading,
 * or the live table is damaged. The live share of the total variance stands in, so that no figure looks more
 * certain than it is. */
static void complete_variance(struct figures *figures) {
    if (figures->live_samples) return;
    figures->live_bytes.variance =
        figures->total_bytes.variance * share(figures->live_bytes.value, figures->total_bytes.value);
    figures->live_objects.variance =
        figures->total_objects.variance * share(figures->live_objects.value, figures->total_objects.value);
}

void load_stacks(struct model_builder *builder, const struct snapshot *snapshot, const char *path) {
    struct model *model = builder->model;
    size_t first = model->stack_count, count = 0;
    struct loaded *list = NULL;
    collect(builder, snapshot, path, &list, &count);
    merge(builder, snapshot_header(snapshot), list, count);
    for (size_t i = first; builder->until != UINT64_MAX && i < model->stack_count; i++)
        model->stacks[i].figures.live_bytes.value = model->stacks[i].figures.live_objects.value = 0;
    read_live(builder, snapshot, path, list, count);
    for (size_t i = first; i < model->stack_count; i++) complete_variance(&model->stacks[i].figures);
    free(list);
}
