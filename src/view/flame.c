#include "view/flame.h"
#include "view/call_tree.h"
#include "view/frames.h"
#include "view/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Frames: each distinct one once */

/* Frames met lately are found by where their symbols are. */
#define RECENT_FRAMES 4096

struct recent_frame {
    const struct symbol *symbol;
    const struct model_module *module;
    uint32_t frame;
};

struct frame_list {
    struct flame_frame *frames;
    uint32_t count, capacity;
    uint32_t *index; /* frame + 1, open addressing, twice the capacity */
    struct recent_frame recent[RECENT_FRAMES];
};

static struct flame_frame frame_of(const struct source_frame *source) {
    const struct symbol *symbol = source->symbol;
    return (struct flame_frame){.function = symbol->function,
        .file = symbol->file,
        .module = source->module ? source->module->path : NULL,
        .line = symbol->line,
        .inlined = symbol->inlined,
        .interpreted = symbol->interpreted,
        .given = symbol->given != NULL};
}

static uint64_t hash_frame(const struct flame_frame *frame) {
    uint64_t hash = name_hash(NAME_HASH_START, frame->function);
    hash = name_hash(name_hash(hash, frame->file), frame->module) + (uint64_t)frame->line;
    return hash ^ hash >> 29;
}

/* A line that is inlined in one place and called in another is one frame. */
static bool same_frame(const struct flame_frame *a, const struct flame_frame *b) {
    return a->line == b->line && name_equal(a->function, b->function) && name_equal(a->file, b->file) &&
           name_equal(a->module, b->module);
}

static bool grow_frames(struct frame_list *list) {
    uint32_t capacity = list->capacity ? 2 * list->capacity : 1024;
    void *frames = reallocarray(list->frames, capacity, sizeof *list->frames);
    if (frames) list->frames = frames;
    uint32_t *index = calloc(2 * (size_t)capacity, sizeof *index);
    if (!frames || !index) {
        free(index);
        return false;
    }
    free(list->index);
    list->index = index;
    list->capacity = capacity;
    for (uint32_t i = 0; i < list->count; i++) {
        size_t slot = hash_frame(&list->frames[i]) & (2 * (size_t)capacity - 1);
        while (index[slot]) slot = (slot + 1) & (2 * (size_t)capacity - 1);
        index[slot] = i + 1;
    }
    return true;
}

/* FLAME_NONE: out of memory. */
static uint32_t number_of_frame(struct frame_list *list, const struct source_frame *source) {
    uint64_t mixed =
        ((uintptr_t)source->symbol * 31 + (uintptr_t)source->module) * UINT64_C(0x9e3779b97f4a7c15);
    struct recent_frame *recent = &list->recent[mixed >> 32 & (RECENT_FRAMES - 1)];
    if (recent->symbol == source->symbol && recent->module == source->module) return recent->frame;

    if (list->count == list->capacity && !grow_frames(list)) return FLAME_NONE;
    struct flame_frame frame = frame_of(source);
    size_t mask = 2 * (size_t)list->capacity - 1, slot = hash_frame(&frame) & mask;
    while (list->index[slot] && !same_frame(&list->frames[list->index[slot] - 1], &frame))
        slot = (slot + 1) & mask;
    if (!list->index[slot]) {
        list->frames[list->count] = frame;
        list->index[slot] = ++list->count;
    }
    *recent = (struct recent_frame){source->symbol, source->module, list->index[slot] - 1};
    return recent->frame;
}

/* The whole tree */

/* What is built, and for each stack the call that it ends at. */
struct growing {
    const struct model *model;
    struct frame_list frames;
    struct call_tree tree;
    uint32_t *stack_call;
    /* The frames of the last stack, outermost first, and the calls they lead to: neighbours share most. */
    struct step {
        struct source_frame frame;
        uint32_t call;
    } * path;
    size_t path_length, path_capacity;
};

static bool make_path(struct growing *growing, size_t length) {
    if (length <= growing->path_capacity) return true;
    void *path = reallocarray(growing->path, 2 * length, sizeof *growing->path);
    if (!path) return false;
    growing->path = path;
    growing->path_capacity = 2 * length;
    return true;
}

static bool add_stack(struct growing *growing, const struct source_frames *frames, size_t site, size_t number,
    struct flame *flame) {
    uint32_t call = 0;
    size_t depth = 0;
    bool shared = true;
    if (!make_path(growing, frames->count)) return false;
    for (size_t i = frames->count; i-- > 0;) {
        if (!source_frames_shows(frames, site, i)) continue;
        const struct source_frame *frame = &frames->frames[i];
        struct step *step = &growing->path[depth++];
        shared = shared && depth <= growing->path_length && step->frame.symbol == frame->symbol &&
                 step->frame.module == frame->module;
        if (!shared) {
            uint32_t name = number_of_frame(&growing->frames, frame);
            if (name == FLAME_NONE) return false;
            *step = (struct step){*frame, call_tree_callee(&growing->tree, call, name)};
            if (step->call == CALL_NONE) return false;
        }
        call = step->call;
    }
    growing->path_length = depth;
    growing->stack_call[number] = call;
    flame->stack_site[number] = number_of_frame(&growing->frames, &frames->frames[site]);
    figures_add(&flame->sum, &growing->model->stacks[number].figures);
    return flame->stack_site[number] != FLAME_NONE;
}

static bool add_stacks(struct growing *growing, struct resolver *resolver, const struct view_query *query,
    struct frame_filter *filter, struct flame *flame) {
    const struct model *model = growing->model;
    struct source_frames frames = {0};
    bool fine = call_tree_begin(&growing->tree);
    for (size_t i = 0; i < model->stack_count && fine; i++) {
        growing->stack_call[i] = flame->stack_site[i] = flame->stack_row[i] = FLAME_NONE;
        fine = source_frames_expand_labelled(&frames, model, resolver, &model->stacks[i]);
        if (fine && frame_filter_keeps(filter, &frames))
            fine = add_stack(growing, &frames, source_frames_site(&frames, query->raw_sites), i, flame);
    }
    source_frames_free(&frames);
    return fine;
}

/* Which calls are large enough */

enum { METRICS = 8 };

static double metric_of(const struct figures *figures, int metric) {
    switch (metric) {
    case 0:
        return figures->live_bytes.value;
    case 1:
        return figures->live_objects.value;
    case 2:
        return figures->at_peak_bytes.value;
    case 3:
        return figures->at_peak_objects.value;
    case 4:
        return figures->total_bytes.value;
    case 5:
        return figures->total_objects.value;
    case 6:
        return figures->temporary_bytes;
    default:
        return figures->temporary_objects;
    }
}

/* The share that each stack has of each figure: [metric][stack]. All are taken in one go, as figures are
 * large and lie far apart. NULL: out of memory. */
static float *take_shares(const struct model *model, const struct figures *sum) {
    size_t count = model->stack_count;
    float *shares = malloc(METRICS * (count + 1) * sizeof *shares);
    double scale[METRICS];
    for (int metric = 0; metric < METRICS; metric++)
        scale[metric] = metric_of(sum, metric) > 0 ? 1 / metric_of(sum, metric) : 0;
    for (size_t i = 0; shares && i < count; i++)
        for (int metric = 0; metric < METRICS; metric++)
            shares[(size_t)metric * count + i] =
                (float)(metric_of(&model->stacks[i].figures, metric) * scale[metric]);
    return shares;
}

/* The largest share that each call and its callees have of any figure. No callee's is above its caller's. */
static bool weigh(const struct growing *growing, const struct figures *sum, float *ret_shares) {
    const struct call_tree *tree = &growing->tree;
    size_t stack_count = growing->model->stack_count;
    float *taken = take_shares(growing->model, sum);
    double *values = malloc(tree->count * sizeof *values);
    memset(ret_shares, 0, tree->count * sizeof *ret_shares);
    for (int metric = 0; taken && values && metric < METRICS; metric++) {
        memset(values, 0, tree->count * sizeof *values);
        for (size_t i = 0; i < stack_count; i++)
            if (growing->stack_call[i] != FLAME_NONE)
                values[growing->stack_call[i]] += (double)taken[(size_t)metric * stack_count + i];
        for (uint32_t i = tree->count; i-- > 1;) values[tree->calls[i].parent] += values[i];
        for (uint32_t i = 0; i < tree->count; i++)
            if ((float)values[i] > ret_shares[i]) ret_shares[i] = (float)values[i];
    }
    bool fine = taken && values;
    free(taken);
    free(values);
    return fine;
}

/* The upper bits of a positive float sort as the float does. */
static uint32_t step_of(float share) {
    uint32_t bits;
    memcpy(&bits, &share, sizeof bits);
    return bits >> 16;
}

/* The least share that at most `nodes_max` calls have. All calls with the same share are treated alike, so
 * the same recording always gives the same tree. */
static float least_share(const float *shares, uint32_t count, uint64_t nodes_max) {
    static uint32_t counts[1 << 16];
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 0; i < count; i++) counts[step_of(shares[i])]++;
    uint64_t kept = 0;
    uint32_t step = 1 << 16;
    while (step > 0 && kept + counts[step - 1] <= nodes_max) kept += counts[--step];
    if (step == 1 << 16) return INFINITY; /* not even the largest: the root alone is kept */
    uint32_t bits = step << 16;
    float least;
    memcpy(&least, &bits, sizeof least);
    return least;
}

/* The tree that is kept */

struct pruning {
    const struct call_tree *tree;
    const float *shares;
    uint32_t *first, *next; /* the callees that are kept: a list for each call */
    uint32_t *place;        /* the node of each call */
    bool *loses;            /* some of its callees are merged */
};

static bool is_kept(const struct pruning *pruning, uint32_t call, float least) {
    return call == 0 || least == 0 || pruning->shares[call] >= least;
}

static void list_callees(struct pruning *pruning, float least) {
    const struct call_tree *tree = pruning->tree;
    for (uint32_t i = 0; i < tree->count; i++) pruning->first[i] = FLAME_NONE;
    for (uint32_t i = tree->count; i-- > 1;) {
        uint32_t parent = tree->calls[i].parent;
        if (is_kept(pruning, i, least)) {
            pruning->next[i] = pruning->first[parent];
            pruning->first[parent] = i;
        } else {
            pruning->loses[parent] = true;
        }
    }
}

static void add_node(struct flame *flame, uint32_t parent, uint32_t frame) {
    flame->nodes[flame->node_count++] = (struct flame_node){parent, frame, 0, FLAME_NONE};
}

/* Goes down first and then to the next sibling, without recursion: stacks are deep. A merged node follows its
 * caller at once. */
static void place_nodes(const struct pruning *pruning, float least, struct flame *flame) {
    const struct call *calls = pruning->tree->calls;
    for (uint32_t call = 0; call != FLAME_NONE;) {
        uint32_t node = pruning->place[call] = flame->node_count;
        add_node(flame, call ? pruning->place[calls[call].parent] : FLAME_NONE, calls[call].frame);
        if (is_kept(pruning, call, least) && pruning->loses[call]) add_node(flame, node, FLAME_NONE);
        if (pruning->first[call] != FLAME_NONE) {
            call = pruning->first[call];
            continue;
        }
        while (call && pruning->next[call] == FLAME_NONE) call = calls[call].parent;
        call = call ? pruning->next[call] : FLAME_NONE;
    }
}

/* Calls that are not kept go to the merged node of the innermost one that is. */
static void place_merged(const struct pruning *pruning, float least, struct flame *flame) {
    const struct call *calls = pruning->tree->calls;
    for (uint32_t i = 1; i < pruning->tree->count; i++) {
        if (is_kept(pruning, i, least)) continue;
        uint32_t parent = calls[i].parent;
        pruning->place[i] = pruning->place[parent] + is_kept(pruning, parent, least);
        flame->nodes[pruning->place[i]].merged++;
        flame->merged_count++;
    }
}

static bool add_rows(const struct growing *growing, const uint32_t *place, struct flame *flame) {
    const struct model *model = growing->model;
    for (size_t i = 0; i < model->stack_count; i++)
        if (growing->stack_call[i] != FLAME_NONE) flame->nodes[place[growing->stack_call[i]]].row = 0;
    for (uint32_t i = 0; i < flame->node_count; i++)
        if (flame->nodes[i].row != FLAME_NONE) flame->nodes[i].row = flame->row_count++;
    flame->rows = malloc((flame->row_count + 1) * sizeof *flame->rows);
    if (!flame->rows) return false;
    for (uint32_t i = 0; i < flame->row_count; i++) figures_clear(&flame->rows[i]);
    for (size_t i = 0; i < model->stack_count; i++) {
        if (growing->stack_call[i] == FLAME_NONE) continue;
        flame->stack_row[i] = flame->nodes[place[growing->stack_call[i]]].row;
        figures_add(&flame->rows[flame->stack_row[i]], &model->stacks[i].figures);
    }
    return true;
}

static bool prune(const struct growing *growing, uint64_t nodes_max, struct flame *flame) {
    uint32_t count = growing->tree.count;
    float *shares = malloc(count * sizeof *shares);
    struct pruning pruning = {
        .tree = &growing->tree,
        .shares = shares,
        .first = malloc(count * sizeof *pruning.first),
        .next = malloc(count * sizeof *pruning.next),
        .place = malloc(count * sizeof *pruning.place),
        .loses = calloc(count, sizeof *pruning.loses),
    };
    bool fine = shares && pruning.first && pruning.next && pruning.place && pruning.loses;
    bool all = !nodes_max || count <= nodes_max;
    fine = fine && (all || weigh(growing, &flame->sum, shares));
    float least = fine && !all ? least_share(shares, count, nodes_max) : 0;
    if (fine) {
        uint32_t losers = 0;
        list_callees(&pruning, least);
        for (uint32_t i = 0; i < count; i++) losers += pruning.loses[i];
        flame->nodes = malloc(((size_t)count + losers) * sizeof *flame->nodes);
        fine = flame->nodes;
    }
    if (fine) {
        place_nodes(&pruning, least, flame);
        place_merged(&pruning, least, flame);
        flame->least = flame->merged_count ? fmin((double)least, 1) : 0;
        fine = add_rows(growing, pruning.place, flame);
    }
    free(shares);
    free(pruning.first);
    free(pruning.next);
    free(pruning.place);
    free(pruning.loses);
    return fine;
}

int flame_make(const struct model *model, struct resolver *resolver, const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    struct frame_filter filter;
    int r = frame_filter_make(query->filter, &filter, problem);
    if (r < 0) return r;
    struct flame flame = {
        .stack_row = malloc((model->stack_count + 1) * sizeof *flame.stack_row),
        .stack_site = malloc((model->stack_count + 1) * sizeof *flame.stack_site),
    };
    figures_clear(&flame.sum);
    struct growing *growing = calloc(1, sizeof *growing);
    bool fine = growing && flame.stack_row && flame.stack_site;
    if (fine) {
        growing->model = model;
        growing->stack_call = malloc((model->stack_count + 1) * sizeof *growing->stack_call);
        fine = growing->stack_call && add_stacks(growing, resolver, query, &filter, &flame);
        flame.frames = growing->frames.frames;
        flame.frame_count = growing->frames.count;
        fine = fine && prune(growing, nodes_max, &flame);
        free(growing->frames.index);
        call_tree_free(&growing->tree);
        free(growing->stack_call);
        free(growing->path);
    }
    free(growing);
    frame_filter_free(&filter);
    if (!fine) {
        flame_free(&flame);
        return problem_set(problem, PROBLEM_FAILURE, "narrow the view with --filter",
            "out of memory while building the call tree");
    }
    *ret_flame = flame;
    return 0;
}

void flame_free(struct flame *flame) {
    free(flame->frames);
    free(flame->nodes);
    free(flame->rows);
    free(flame->stack_row);
    free(flame->stack_site);
    *flame = (struct flame){0};
}
