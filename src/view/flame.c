#include "view/flame.h"
#include "view/call_tree.h"
#include "view/source_frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The whole tree */

/* What is built, and for each stack of each side the call that it ends at. */
struct growing {
    const struct flame_side *sides;
    size_t side_count;
    uint32_t *stack_call[FLAME_SIDES];
    struct frame_list frames;
    struct call_tree tree;
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

/* The call that a stack ends at, CALL_NONE: out of memory. */
static uint32_t add_stack(struct growing *growing, const struct source_frames *frames, size_t site) {
    uint32_t call = 0;
    size_t depth = 0;
    bool shared = true;
    if (!make_path(growing, frames->count)) return CALL_NONE;
    for (size_t i = frames->count; i-- > 0;) {
        if (!source_frames_shows(frames, site, i)) continue;
        const struct source_frame *frame = &frames->frames[i];
        struct step *step = &growing->path[depth++];
        shared = shared && depth <= growing->path_length && step->frame.symbol == frame->symbol &&
                 step->frame.module == frame->module;
        if (!shared) {
            uint32_t name = frame_list_number(&growing->frames, frame);
            if (name == FRAME_NONE) return CALL_NONE;
            *step = (struct step){*frame, call_tree_callee(&growing->tree, call, name)};
            if (step->call == CALL_NONE) return CALL_NONE;
        }
        call = step->call;
    }
    growing->path_length = depth;
    return call;
}

static bool add_stacks(struct growing *growing, size_t side, const struct view_query *query,
    struct frame_filter *filter, struct flame_part *part) {
    const struct model *model = growing->sides[side].model;
    struct source_frames frames = {0};
    bool fine = true;
    growing->path_length = 0; /* it holds symbols of another resolver */
    for (size_t i = 0; i < model->stack_count && fine; i++) {
        growing->stack_call[side][i] = part->stack_site[i] = part->stack_row[i] = FLAME_NONE;
        fine =
            source_frames_expand_labelled(&frames, model, growing->sides[side].resolver, &model->stacks[i]);
        if (!fine || !frame_filter_keeps(filter, &frames)) continue;
        size_t site = source_frames_site(&frames, query->raw_sites);
        growing->stack_call[side][i] = add_stack(growing, &frames, site);
        part->stack_site[i] = frame_list_number(&growing->frames, &frames.frames[site]);
        fine = growing->stack_call[side][i] != CALL_NONE && part->stack_site[i] != FRAME_NONE;
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

/* Each figure of each stack that is in the tree, [metric][stack], and their sums. All are taken in one go, as
 * figures are large and lie far apart. NULL: out of memory. */
static float *take_values(const struct growing *growing, size_t side, double ret_sums[METRICS]) {
    const struct model *model = growing->sides[side].model;
    size_t count = model->stack_count;
    float *taken = calloc(METRICS * (count + 1), sizeof *taken);
    if (!taken) return NULL;
    for (size_t i = 0; i < count; i++)
        for (int metric = 0; metric < METRICS && growing->stack_call[side][i] != FLAME_NONE; metric++) {
            double value = metric_of(&model->stacks[i].figures, metric);
            taken[(size_t)metric * count + i] = (float)value;
            ret_sums[metric] += value;
        }
    return taken;
}

/* Raises `shares` to what each call and its callees have of any figure of one side. */
static bool weigh_side(const struct growing *growing, size_t side, double *values, float *shares) {
    const struct call_tree *tree = &growing->tree;
    const uint32_t *stack_call = growing->stack_call[side];
    size_t stack_count = growing->sides[side].model->stack_count;
    double sums[METRICS] = {0};
    float *taken = take_values(growing, side, sums);
    for (int metric = 0; taken && metric < METRICS; metric++) {
        if (!(sums[metric] > 0)) continue;
        memset(values, 0, tree->count * sizeof *values);
        for (size_t i = 0; i < stack_count; i++)
            if (stack_call[i] != FLAME_NONE)
                values[stack_call[i]] += (double)taken[(size_t)metric * stack_count + i];
        for (uint32_t i = tree->count; i-- > 1;) values[tree->calls[i].parent] += values[i];
        for (uint32_t i = 0; i < tree->count; i++) {
            float share = (float)(values[i] / sums[metric]);
            if (share > shares[i]) shares[i] = share;
        }
    }
    free(taken);
    return taken != NULL;
}

/* The largest share that each call and its callees have of any figure. No callee's is above its caller's. */
static bool weigh(const struct growing *growing, float *ret_shares) {
    double *values = malloc(growing->tree.count * sizeof *values);
    bool fine = values != NULL;
    memset(ret_shares, 0, growing->tree.count * sizeof *ret_shares);
    for (size_t side = 0; side < growing->side_count && fine; side++)
        fine = weigh_side(growing, side, values, ret_shares);
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

static void number_rows(const struct growing *growing, const uint32_t *place, struct flame *flame) {
    for (size_t side = 0; side < growing->side_count; side++)
        for (size_t i = 0; i < growing->sides[side].model->stack_count; i++) {
            uint32_t call = growing->stack_call[side][i];
            if (call != FLAME_NONE) flame->nodes[place[call]].row = 0;
        }
    for (uint32_t i = 0; i < flame->node_count; i++)
        if (flame->nodes[i].row != FLAME_NONE) flame->nodes[i].row = flame->row_count++;
}

static bool add_rows(const struct growing *growing, size_t side, const uint32_t *place, struct flame *flame) {
    const struct model *model = growing->sides[side].model;
    struct flame_part *part = &flame->parts[side];
    part->rows = malloc((flame->row_count + 1) * sizeof *part->rows);
    if (!part->rows) return false;
    for (uint32_t i = 0; i < flame->row_count; i++) figures_clear(&part->rows[i]);
    for (size_t i = 0; i < model->stack_count; i++) {
        uint32_t call = growing->stack_call[side][i];
        if (call == FLAME_NONE) continue;
        part->stack_row[i] = flame->nodes[place[call]].row;
        figures_add(&part->rows[part->stack_row[i]], &model->stacks[i].figures);
    }
    for (uint32_t i = 0; i < flame->row_count; i++) figures_add(&part->sum, &part->rows[i]);
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
    fine = fine && (all || weigh(growing, shares));
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
        number_rows(growing, pruning.place, flame);
        for (size_t side = 0; side < growing->side_count && fine; side++)
            fine = add_rows(growing, side, pruning.place, flame);
    }
    free(shares);
    free(pruning.first);
    free(pruning.next);
    free(pruning.place);
    free(pruning.loses);
    return fine;
}

static bool prepare_side(struct growing *growing, size_t side, struct flame_part *part) {
    size_t count = growing->sides[side].model->stack_count + 1;
    growing->stack_call[side] = malloc(count * sizeof *growing->stack_call[side]);
    part->stack_row = malloc(count * sizeof *part->stack_row);
    part->stack_site = malloc(count * sizeof *part->stack_site);
    figures_clear(&part->sum);
    return growing->stack_call[side] && part->stack_row && part->stack_site;
}

static bool grow(struct growing *growing, const struct view_query *query, struct frame_filter *filter,
    struct flame *flame) {
    bool fine = call_tree_begin(&growing->tree);
    for (size_t side = 0; side < growing->side_count && fine; side++)
        fine = prepare_side(growing, side, &flame->parts[side]) &&
               add_stacks(growing, side, query, filter, &flame->parts[side]);
    return fine;
}

static int make(const struct flame_side *sides, size_t side_count, enum frame_match match,
    const struct view_query *query, uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    struct frame_filter filter;
    int r = frame_filter_make(query->filter, &filter, problem);
    if (r < 0) return r;
    struct flame flame = {0};
    struct growing growing = {.sides = sides, .side_count = side_count, .frames.match = match};
    bool fine = grow(&growing, query, &filter, &flame) && prune(&growing, nodes_max, &flame);
    flame.frame_count = growing.frames.count;
    flame.frames = frame_list_take(&growing.frames);
    call_tree_free(&growing.tree);
    for (size_t side = 0; side < side_count; side++) free(growing.stack_call[side]);
    free(growing.path);
    frame_filter_free(&filter);
    if (!fine) {
        flame_free(&flame);
        return problem_set(problem, PROBLEM_FAILURE, "narrow the view with --filter",
            "out of memory while building the call tree");
    }
    *ret_flame = flame;
    return 0;
}

int flame_make(const struct model *model, struct resolver *resolver, const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    struct flame_side side = {model, resolver};
    return make(&side, 1, MATCH_PLACES, query, nodes_max, ret_flame, problem);
}

int flame_compare(const struct flame_side sides[FLAME_SIDES], const struct view_query *query,
    uint64_t nodes_max, struct flame *ret_flame, struct problem *problem) {
    bool lines = query->by == BY_SITE || query->by == BY_LINE;
    return make(sides, FLAME_SIDES, lines ? MATCH_LINES : MATCH_NAMES, query, nodes_max, ret_flame, problem);
}

void flame_free(struct flame *flame) {
    free(flame->frames);
    free(flame->nodes);
    for (size_t i = 0; i < FLAME_SIDES; i++) {
        free(flame->parts[i].rows);
        free(flame->parts[i].stack_row);
        free(flame->parts[i].stack_site);
    }
    *flame = (struct flame){0};
}
