#include "view/flame.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a flame graph is made from: the whole tree, and the models of its sides. */
struct whole {
    const struct stack_tree_side *sides;
    size_t side_count;
    struct stack_tree stacks;
};

/* ---- which calls are large enough ---- */

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

/* Copies each figure of each stack that is in the tree, as [metric][stack], and adds them up. The figures of a
 * stack are large and lie far apart: one pass over them is cheaper than one for each metric. */
static float *copy_metrics(const struct whole *whole, size_t side, double ret_sums[METRICS]) {
    const struct model *model = whole->sides[side].model;
    size_t count = model->stack_count;
    float *copied = memory_allocate(METRICS * (count + 1) * sizeof *copied);
    for (size_t i = 0; i < count; i++)
        for (int metric = 0; metric < METRICS && whole->stacks.stack_call[side][i] != CALL_NONE; metric++) {
            double value = metric_of(&model->stacks[i].figures, metric);
            copied[(size_t)metric * count + i] = (float)value;
            ret_sums[metric] += value;
        }
    return copied;
}

/* Raises `shares` to the share that each call has, with all its callees, of any figure of one side. */
static void weigh_side(const struct whole *whole, size_t side, double *values, float *shares) {
    const struct call_tree *tree = &whole->stacks.tree;
    const uint32_t *stack_call = whole->stacks.stack_call[side];
    size_t stack_count = whole->sides[side].model->stack_count;
    double sums[METRICS] = {0};
    float *copied = copy_metrics(whole, side, sums);
    for (int metric = 0; metric < METRICS; metric++) {
        if (!(sums[metric] > 0)) continue;
        memset(values, 0, tree->count * sizeof *values);
        for (size_t i = 0; i < stack_count; i++)
            if (stack_call[i] != CALL_NONE)
                values[stack_call[i]] += (double)copied[(size_t)metric * stack_count + i];
        for (uint32_t i = tree->count; i-- > 1;) values[tree->calls[i].parent] += values[i];
        for (uint32_t i = 0; i < tree->count; i++) {
            float share = (float)(values[i] / sums[metric]);
            if (share > shares[i]) shares[i] = share;
        }
    }
    free(copied);
}

/* The largest share that each call has, with all its callees, of any figure of any side. A callee's share is never
 * larger than its caller's. */
static float *weigh(const struct whole *whole) {
    uint32_t count = whole->stacks.tree.count;
    float *shares = memory_allocate(count * sizeof *shares);
    double *values = memory_allocate(count * sizeof *values);
    for (size_t side = 0; side < whole->side_count; side++) weigh_side(whole, side, values, shares);
    free(values);
    return shares;
}

/* Shares are counted in steps of their upper 16 bits. The bits of positive floats, read as an integer, sort as the
 * floats do. */
#define SHARE_STEPS (1u << 16)

static uint32_t step_of(float share) {
    uint32_t bits;
    memcpy(&bits, &share, sizeof bits);
    return bits >> 16;
}

static float share_of(uint32_t step) {
    uint32_t bits = step << 16;
    float share;
    memcpy(&share, &bits, sizeof share);
    return share;
}

/* The smallest limit for which at most `nodes_max` calls have a share of at least the limit. All calls with one
 * share are on the same side of it, so that a recording always gives the same tree. */
static float least_share(const float *shares, uint32_t count, uint64_t nodes_max) {
    uint32_t *counts = memory_allocate(SHARE_STEPS * sizeof *counts);
    for (uint32_t i = 0; i < count; i++) counts[step_of(shares[i])]++;
    uint64_t kept = 0;
    uint32_t step = SHARE_STEPS;
    while (step > 0 && kept + counts[step - 1] <= nodes_max) kept += counts[--step];
    free(counts);
    return step == SHARE_STEPS ? INFINITY : share_of(step); /* infinity: the root alone is kept */
}

/* ---- the tree that is kept ---- */

struct pruning {
    const struct call_tree *tree;
    const float *shares;    /* NULL: all calls are kept */
    float least;            /* calls with a smaller share are merged */
    uint32_t *first, *next; /* for each call, the list of its callees that are kept; FLAME_NONE ends it */
    bool *loses;            /* for each call: some of its callees are merged */
    uint32_t *place;        /* for each call: the number of its node */
};

static bool is_kept(const struct pruning *pruning, uint32_t call) {
    return call == CALL_ROOT || !pruning->shares || pruning->shares[call] >= pruning->least;
}

/* Returns how many calls lose callees: each of them gets a merged node. */
static uint32_t list_callees(struct pruning *pruning) {
    const struct call_tree *tree = pruning->tree;
    uint32_t losers = 0;
    for (uint32_t i = 0; i < tree->count; i++) pruning->first[i] = FLAME_NONE;
    for (uint32_t i = tree->count; i-- > 1;) {
        uint32_t parent = tree->calls[i].parent;
        if (is_kept(pruning, i)) {
            pruning->next[i] = pruning->first[parent];
            pruning->first[parent] = i;
        } else if (!pruning->loses[parent]) {
            pruning->loses[parent] = true;
            losers++;
        }
    }
    return losers;
}

static void add_node(struct flame *flame, uint32_t parent, uint32_t frame) {
    flame->nodes[flame->node_count++] = (struct flame_node){parent, frame, 0, FLAME_NONE};
}

/* Depth first: a node, its merged node if it has one, its callees, then its next sibling. The walk goes up by
 * `parent` and needs no recursion, since stacks may be very deep. */
static void place_nodes(const struct pruning *pruning, struct flame *flame) {
    const struct call *calls = pruning->tree->calls;
    for (uint32_t call = CALL_ROOT; call != FLAME_NONE;) {
        uint32_t node = pruning->place[call] = flame->node_count;
        add_node(
            flame, call == CALL_ROOT ? FLAME_NONE : pruning->place[calls[call].parent], calls[call].frame);
        if (pruning->loses[call]) add_node(flame, node, FLAME_NONE);
        if (pruning->first[call] != FLAME_NONE) {
            call = pruning->first[call];
            continue;
        }
        while (call != CALL_ROOT && pruning->next[call] == FLAME_NONE) call = calls[call].parent;
        call = call == CALL_ROOT ? FLAME_NONE : pruning->next[call];
    }
}

/* A call that is not kept goes to the merged node of its innermost caller that is kept. That node directly follows
 * the caller's own node. */
static void place_merged(const struct pruning *pruning, struct flame *flame) {
    const struct call *calls = pruning->tree->calls;
    for (uint32_t i = 1; i < pruning->tree->count; i++) {
        if (is_kept(pruning, i)) continue;
        uint32_t parent = calls[i].parent;
        pruning->place[i] = pruning->place[parent] + is_kept(pruning, parent);
        flame->nodes[pruning->place[i]].merged++;
        flame->merged_count++;
    }
}

/* Numbers the nodes at which stacks end, in the order of the nodes. */
static void number_rows(const struct whole *whole, const uint32_t *place, struct flame *flame) {
    for (size_t side = 0; side < whole->side_count; side++)
        for (size_t i = 0; i < whole->sides[side].model->stack_count; i++) {
            uint32_t call = whole->stacks.stack_call[side][i];
            if (call != CALL_NONE) flame->nodes[place[call]].row = 0;
        }
    for (uint32_t i = 0; i < flame->node_count; i++)
        if (flame->nodes[i].row != FLAME_NONE) flame->nodes[i].row = flame->row_count++;
}

static void add_rows(const struct whole *whole, size_t side, const uint32_t *place, struct flame *flame) {
    const struct model *model = whole->sides[side].model;
    struct flame_part *part = &flame->parts[side];
    part->rows = memory_allocate((flame->row_count + 1) * sizeof *part->rows);
    part->stack_row = memory_allocate((model->stack_count + 1) * sizeof *part->stack_row);
    for (uint32_t i = 0; i < flame->row_count; i++) figures_clear(&part->rows[i]);
    for (size_t i = 0; i < model->stack_count; i++) {
        uint32_t call = whole->stacks.stack_call[side][i];
        part->stack_row[i] = call == CALL_NONE ? FLAME_NONE : flame->nodes[place[call]].row;
        if (call != CALL_NONE) figures_add(&part->rows[part->stack_row[i]], &model->stacks[i].figures);
    }
    figures_clear(&part->sum);
    for (uint32_t i = 0; i < flame->row_count; i++) figures_add(&part->sum, &part->rows[i]);
}

/* `nodes_max` 0: all calls are kept. */
static void prune(const struct whole *whole, uint64_t nodes_max, struct flame *flame) {
    uint32_t count = whole->stacks.tree.count;
    float *shares = nodes_max && count > nodes_max ? weigh(whole) : NULL;
    struct pruning pruning = {
        .tree = &whole->stacks.tree,
        .shares = shares,
        .least = shares ? least_share(shares, count, nodes_max) : 0,
        .first = memory_allocate(count * sizeof *pruning.first),
        .next = memory_allocate(count * sizeof *pruning.next),
        .loses = memory_allocate(count * sizeof *pruning.loses),
        .place = memory_allocate(count * sizeof *pruning.place),
    };
    uint32_t losers = list_callees(&pruning);
    flame->nodes = memory_allocate(((size_t)count + losers) * sizeof *flame->nodes);
    place_nodes(&pruning, flame);
    place_merged(&pruning, flame);
    flame->least = flame->merged_count ? fmin((double)pruning.least, 1) : 0;
    number_rows(whole, pruning.place, flame);
    for (size_t side = 0; side < whole->side_count; side++) add_rows(whole, side, pruning.place, flame);
    free(shares);
    free(pruning.first);
    free(pruning.next);
    free(pruning.loses);
    free(pruning.place);
}

static int make(const struct stack_tree_side *sides, size_t side_count, enum frame_match match,
    const struct view_query *query, uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    struct whole whole = {.sides = sides, .side_count = side_count};
    int r = stack_tree_make(sides, side_count, match, query, &whole.stacks, problem);
    if (r < 0) return r;
    struct flame flame = {0};
    prune(&whole, nodes_max, &flame);
    for (size_t side = 0; side < side_count; side++) {
        flame.parts[side].stack_site = whole.stacks.stack_site[side];
        whole.stacks.stack_site[side] = NULL;
    }
    flame.frame_count = whole.stacks.frames.count;
    flame.frames = frame_list_take(&whole.stacks.frames);
    stack_tree_free(&whole.stacks);
    *ret_flame = flame;
    return 0;
}

int flame_make(const struct model *model, struct resolver *resolver, const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    struct stack_tree_side side = {model, resolver};
    return make(&side, 1, MATCH_PLACES, query, nodes_max, ret_flame, problem);
}

int flame_compare(const struct stack_tree_side sides[STACK_TREE_SIDES], const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    bool lines = query->by == BY_SITE || query->by == BY_LINE;
    return make(
        sides, STACK_TREE_SIDES, lines ? MATCH_LINES : MATCH_NAMES, query, nodes_max, ret_flame, problem);
}

void flame_free(struct flame *flame) {
    free(flame->frames);
    free(flame->nodes);
    for (size_t i = 0; i < STACK_TREE_SIDES; i++) {
        free(flame->parts[i].rows);
        free(flame->parts[i].stack_row);
        free(flame->parts[i].stack_site);
    }
    *flame = (struct flame){0};
}
