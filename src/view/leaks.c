#include "view/leaks.h"

#include "base/memory.h"
#include "view/c_library_keeps.h"
#include "view/frame_filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROWING_PARTS 3 /* a growing leak has left blocks behind in at least so many parts of the run */
#define NEARLY_NONE                                                                                          \
    0.1 /* freed objects / live objects of an age: below this, blocks of that age are not freed */
#define CHANCE 0.05
#define FEW    5.0 /* samples; if half of all blocks were freed, none of 5 samples would be in 3 of 100 cases */

/* ---- judgement ---- */

/* The settled age: the lowest age such that nearly all blocks that got older are live. Few frees at a higher age do
 * not count, for instance by a thread that was not scheduled for a while. */
struct settled_age {
    int bucket; /* the lifetime bucket below that age; -1: all ages, LIFETIME_BUCKETS - 1: there is no such age */
    uint64_t live; /* live samples that are older */
    double freed;  /* objects that were freed at a higher age */
};

static struct settled_age settled_age(const struct figures *figures) {
    struct settled_age found = {.bucket = LIFETIME_BUCKETS - 1};
    if (!figures->live_samples) return found;
    double objects = figures->live_objects.value / (double)figures->live_samples, freed = 0;
    uint64_t live = 0;
    for (int bucket = LIFETIME_BUCKETS - 2; bucket >= -1; bucket--) {
        live += figures->ages[bucket + 1];
        freed += figures->lifetime[bucket + 1];
        /* Frees in the bucket just below count too: a cache whose ages lie at the edge of two buckets frees there. */
        double near = bucket >= 0 ? figures->lifetime[bucket] : 0;
        if (live && freed + near <= NEARLY_NONE * objects * (double)live)
            found = (struct settled_age){bucket, live, freed};
    }
    return found;
}

/* The upper end of a lifetime bucket, in seconds. */
static double bucket_end(int bucket) {
    return bucket < 0 ? 0 : 1e-9 * (double)(UINT64_C(1) << (LIFETIME_SHIFT + 2 * bucket));
}

/* Whether the `oldest` oldest of all samples may all be live by chance: the probability of that is at least CHANCE,
 * if live and freed blocks had equal lifetimes. Sampling may have missed the old ones among the freed blocks. In an
 * exact recording nothing is missed, and the question does not arise. */
static bool may_be_chance(const struct figures *figures, uint64_t oldest) {
    double live = (double)figures->live_samples;
    double all = fmax(live, (double)figures->samples), chance = 1;
    for (uint64_t i = 0; i < oldest && chance >= CHANCE; i++)
        chance *= (live - (double)i) / (all - (double)i);
    return chance >= CHANCE;
}

/* For n samples of small blocks of one size, variance = value² / n. For large blocks the variance is less. */
static bool rests_on_few(struct estimate estimate) {
    return estimate.variance > estimate.value * estimate.value / FEW;
}

static unsigned parts_with_births(const struct figures *figures, int from, int end) {
    unsigned parts = 0;
    for (int i = from; i < end; i++) parts += figures->births[i] > 0;
    return parts;
}

/* How many parts of the run ended more than `age` seconds before its end. Blocks from these parts would be freed,
 * if they were freed at that age. */
static int parts_before(double age, double duration) {
    if (!(duration > 0)) return BIRTH_PARTS;
    return (int)fmax(0, floor((1 - age / duration) * BIRTH_PARTS));
}

static double growth(const struct figures *figures, double duration) {
    uint64_t late = 0;
    for (int i = BIRTH_PARTS / 2; i < BIRTH_PARTS; i++) late += figures->births[i];
    if (!figures->live_samples || !(duration > 0)) return 0;
    return figures->live_bytes.value * (double)late / (double)figures->live_samples / (duration / 2);
}

static enum leak_kind kind_of(
    const struct figures *figures, const struct leak_scene *scene, const struct leak *leak, int settled) {
    bool only_early = figures->births[0] == figures->live_samples;
    bool only_late = figures->births[BIRTH_PARTS - 1] == figures->live_samples;
    bool outlives =
        leak->outliving && !leak->never_freed && (scene->exact || !may_be_chance(figures, leak->outliving));
    /* A place that has freed nearly all its blocks allocates all the time, and not only at start-up. */
    bool mostly_kept = figures->live_objects.value > 0.1 * figures->total_objects.value;
    if (leak->inherited) return LEAK_START_UP;
    if (!figures->live_samples) return leak->never_freed ? LEAK_NEVER_FREED : LEAK_IN_USE;
    if (only_early && scene->from_start && (mostly_kept || !outlives)) return LEAK_START_UP;
    if (only_late && !scene->has_exited) return LEAK_IN_USE;
    bool goes_on = parts_with_births(figures, settled > 2 ? settled - 2 : 0, settled) > 0;
    if ((leak->never_freed || outlives) && leak->parts >= GROWING_PARTS && goes_on) return LEAK_GROWING;
    if (leak->never_freed) return LEAK_NEVER_FREED;
    return outlives ? LEAK_OUTLIVING : LEAK_IN_USE;
}

struct leak leaks_judge(const struct figures *figures, const struct leak_scene *scene) {
    struct settled_age age = settled_age(figures);
    int settled = parts_before(bucket_end(age.bucket), scene->duration);
    struct leak leak = {.never_freed = !(figures->freed_objects > 0),
        .inherited = figures->inherited_bytes > 0 && !(figures->total_objects.value > 0),
        .parts = parts_with_births(figures, 0, settled),
        .outliving = age.live,
        .freed_later = age.freed,
        .growth = growth(figures, scene->duration)};
    leak.kind = kind_of(figures, scene, &leak, settled);
    leak.uncertain = leaks_is_likely(leak.kind) && leak.never_freed && rests_on_few(figures->live_bytes);
    return leak;
}

struct leak_scene leaks_scene_of(const struct model *model) {
    struct leak_scene scene = {.exact = model->exact, .has_exited = true, .from_start = true};
    for (size_t i = 0; i < model->process_count; i++) {
        const struct model_process *process = &model->processes[i];
        if (process->state != PROCESS_FINISHED || process->is_snapshot || process->attached)
            scene.has_exited = false;
        if (process->attached) scene.from_start = false;
        scene.duration = fmax(scene.duration, process->duration);
    }
    return scene;
}

/* ---- finding ---- */

/* Copies the stacks that are to be judged into leaks->stacks, and returns how many they are: those that the filter
 * keeps and that are neither suppressed nor kept by the C library. */
static size_t select_stacks(const struct model *model, struct resolver *resolver,
    const struct view_query *query, struct frame_filter *filter, struct suppressions *suppressions,
    struct leaks *leaks) {
    struct source_frames frames = {0};
    size_t count = 0;
    leaks->stacks = memory_allocate((model->stack_count + 1) * sizeof *leaks->stacks);
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_stack *stack = &model->stacks[i];
        bool live = stack->figures.live_bytes.value > 0 || stack->figures.live_objects.value > 0;
        if (!live && query->by == BY_STACK) continue;
        source_frames_expand_labelled(&frames, model, resolver, stack);
        if (!frame_filter_keeps(filter, &frames)) continue;
        struct suppression *suppression = suppressions ? suppressions_find(suppressions, &frames) : NULL;
        if (suppression) {
            figures_add(&leaks->suppressed, &stack->figures);
            suppression->used |= live;
        } else if (c_library_keeps(&frames)) {
            figures_add(&leaks->held, &stack->figures);
        } else {
            leaks->stacks[count++] = *stack;
        }
    }
    source_frames_free(&frames);
    return count;
}

static int rank(enum leak_kind kind) {
    static const int ranks[] = {[LEAK_GROWING] = 0,
        [LEAK_OUTLIVING] = 1,
        [LEAK_NEVER_FREED] = 1,
        [LEAK_IN_USE] = 2,
        [LEAK_START_UP] = 3};
    return ranks[kind];
}

/* By kind, then by size: the rows are sorted by size already, so that their addresses tell their order. */
static int compare(const void *left, const void *right) {
    const struct leak *a = left, *b = right;
    int order = rank(a->kind) - rank(b->kind);
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

static void judge_rows(const struct model *model, struct leaks *leaks) {
    struct leak_scene scene = leaks_scene_of(model);
    leaks->list = memory_allocate((leaks->rows.count + 1) * sizeof *leaks->list);
    for (size_t i = 0; i < leaks->rows.count; i++) {
        const struct view_row *row = &leaks->rows.rows[i];
        if (!(row->figures.live_bytes.value > 0) && !(row->figures.live_objects.value > 0)) continue;
        struct leak *leak = &leaks->list[leaks->count++];
        *leak = leaks_judge(&row->figures, &scene);
        leak->row = row;
        struct figures *sum = leaks_is_likely(leak->kind)   ? &leaks->likely
                              : leak->kind == LEAK_START_UP ? &leaks->start_up
                                                            : &leaks->in_use;
        figures_add(sum, &row->figures);
    }
    if (leaks->count) qsort(leaks->list, leaks->count, sizeof *leaks->list, compare);
}

int leaks_find(const struct model *model, struct resolver *resolver, const struct view_query *query,
    struct suppressions *suppressions, struct leaks *ret_leaks, struct problem *problem) {
    struct frame_filter filter;
    int r = frame_filter_make(query->filter, &filter, problem);
    if (r < 0) return r;
    struct leaks leaks = {0};
    struct figures *sums[] = {&leaks.likely, &leaks.in_use, &leaks.start_up, &leaks.suppressed, &leaks.held};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) figures_clear(sums[i]);

    struct model selected = *model;
    selected.stack_count = select_stacks(model, resolver, query, &filter, suppressions, &leaks);
    selected.stacks = leaks.stacks;
    frame_filter_free(&filter);
    struct view_query rest = *query;
    rest.filter = NULL;
    rest.sort = SORT_LIVE;
    r = view_rows_query(&selected, resolver, &rest, &leaks.rows, problem);
    if (r < 0) {
        leaks_free(&leaks);
        return r;
    }
    judge_rows(model, &leaks);
    *ret_leaks = leaks;
    return 0;
}

void leaks_free(struct leaks *leaks) {
    free(leaks->list);
    free(leaks->stacks);
    view_rows_free(&leaks->rows);
    *leaks = (struct leaks){0};
}
