#include "view/stack_tree.h"

#include "base/memory.h"
#include "view/frame_filter.h"

#include <stdlib.h>

/* The frames of the stack that was added last, outermost first, and the calls that they led to. The next stack
 * shares most of them: its calls are looked up only from the first frame on that differs. */
struct path {
    struct step {
        struct source_frame frame;
        uint32_t call;
    } * steps;
    size_t length, capacity;
};

static void make_room(struct path *path, size_t length) {
    if (length <= path->capacity) return;
    path->capacity = 2 * length;
    path->steps = memory_reallocate(path->steps, path->capacity * sizeof *path->steps);
}

/* The call that the stack ends at. */
static uint32_t add_stack(
    struct stack_tree *tree, struct path *path, const struct source_frames *frames, size_t site) {
    uint32_t call = CALL_ROOT;
    size_t depth = 0;
    bool shared = true;
    make_room(path, frames->count);
    for (size_t i = frames->count; i-- > 0;) {
        if (!source_frames_shows(frames, site, i)) continue;
        const struct source_frame *frame = &frames->frames[i];
        struct step *step = &path->steps[depth++];
        shared = shared && depth <= path->length && step->frame.symbol == frame->symbol &&
                 step->frame.module == frame->module;
        if (!shared)
            *step = (struct step){
                *frame, call_tree_callee(&tree->tree, call, frame_list_number(&tree->frames, frame))};
        call = step->call;
    }
    path->length = depth;
    return call;
}

static void add_side(struct stack_tree *tree, size_t number, const struct stack_tree_side *side,
    bool raw_sites, struct frame_filter *filter) {
    const struct model *model = side->model;
    uint32_t *calls = memory_allocate((model->stack_count + 1) * sizeof *calls);
    uint32_t *sites = memory_allocate((model->stack_count + 1) * sizeof *sites);
    struct source_frames frames = {0};
    struct path path = {0};
    for (size_t i = 0; i < model->stack_count; i++) {
        calls[i] = CALL_NONE;
        sites[i] = FRAME_NONE;
        source_frames_expand_labelled(&frames, model, side->resolver, &model->stacks[i]);
        if (!frame_filter_keeps(filter, &frames)) continue;
        size_t site = source_frames_site(&frames, raw_sites);
        calls[i] = add_stack(tree, &path, &frames, site);
        sites[i] = frame_list_number(&tree->frames, &frames.frames[site]);
    }
    tree->stack_call[number] = calls;
    tree->stack_site[number] = sites;
    source_frames_free(&frames);
    free(path.steps);
}

int stack_tree_make(const struct stack_tree_side *sides, size_t side_count, enum frame_match match,
    const struct view_query *query, struct stack_tree *ret_tree, struct problem *problem) {
    struct frame_filter filter;
    int r = frame_filter_make(query->filter, &filter, problem);
    if (r < 0) return r;
    *ret_tree = (struct stack_tree){.frames.match = match};
    call_tree_begin(&ret_tree->tree);
    for (size_t i = 0; i < side_count; i++) add_side(ret_tree, i, &sides[i], query->raw_sites, &filter);
    frame_filter_free(&filter);
    return 0;
}

void stack_tree_free(struct stack_tree *tree) {
    free(frame_list_take(&tree->frames));
    call_tree_free(&tree->tree);
    for (size_t i = 0; i < STACK_TREE_SIDES; i++) {
        free(tree->stack_call[i]);
        free(tree->stack_site[i]);
    }
    *tree = (struct stack_tree){0};
}
