#include "view/source_frames.h"

#include "base/memory.h"
#include "base/path.h"
#include "model/stack_labels.h"
#include "view/allocation_wrapper.h"

#include <stdlib.h>
#include <string.h>

const struct symbol source_frames_dropped = {.function = "[dropped]"};

/* Stacks that follow each other share functions, and judging a name takes long. A resolver keeps equal texts of a
 * file once, so the cache can compare the addresses of names. It is direct-mapped. */
#define VERDICTS 1024

struct wrapper_verdict {
    const char *function, *module;
    enum allocation_wrapper wrapper;
};

static enum allocation_wrapper wrapper_of_frame(
    const struct source_frames *frames, const struct source_frame *frame) {
    const char *function = frame->symbol->function, *module = frame->module ? frame->module->path : NULL;
    if (!frames->verdicts) return allocation_wrapper_of(function, module);
    uint64_t hash = ((uintptr_t)function * 31 + (uintptr_t)module) * UINT64_C(0x9e3779b97f4a7c15);
    struct wrapper_verdict *verdict = &frames->verdicts[hash >> 32 & (VERDICTS - 1)];
    if (verdict->function != function || verdict->module != module)
        *verdict = (struct wrapper_verdict){function, module, allocation_wrapper_of(function, module)};
    return verdict->wrapper;
}

static void add_frames(struct source_frames *frames, const struct symbol *symbols, size_t count,
    const struct model_module *module) {
    if (frames->count + count > frames->capacity) {
        frames->capacity = 2 * (frames->count + count) + 32;
        frames->frames = memory_reallocate(frames->frames, frames->capacity * sizeof *frames->frames);
    }
    for (size_t i = 0; i < count; i++)
        frames->frames[frames->count++] = (struct source_frame){&symbols[i], module};
}

static void start(struct source_frames *frames) {
    if (!frames->verdicts) frames->verdicts = memory_allocate(VERDICTS * sizeof *frames->verdicts);
    frames->count = 0;
}

/* Frames of the recorder are on a stack when the allocator that it calls allocates in turn. */
static bool is_recorder(struct source_frames *frames, const struct model_module *module) {
    if (module == frames->module) return frames->module_is_recorder;
    frames->module = module;
    frames->module_is_recorder = module && strcmp(path_last_part(module->path), "libmalloscope.so") == 0;
    return frames->module_is_recorder;
}

/* Adds frame number `i` of the stack, which is several source frames if calls were inlined there. The leaf is shown
 * even if it is the recorder's. */
static void add_frame(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack, uint32_t i) {
    struct symbol_list list = resolver_look_up(resolver, stack, i);
    if (i == 0 || !is_recorder(frames, list.module)) add_frames(frames, list.frames, list.count, list.module);
}

static void add_stack(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack) {
    frames->first = frames->count;
    frames->in_own_heap = stack->in_own_heap;
    for (uint32_t i = 0; i < stack->frame_count; i++) add_frame(frames, resolver, stack, i);
    if (!stack->frame_count) add_frames(frames, &source_frames_dropped, 1, NULL);
    frames->end = frames->count;
}

void source_frames_expand(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack) {
    start(frames);
    add_stack(frames, resolver, stack);
}

void source_frames_expand_labelled(struct source_frames *frames, const struct model *model,
    struct resolver *resolver, const struct model_stack *stack) {
    start(frames);
    if (stack->type) add_frames(frames, resolver_label(resolver, "type", stack->type), 1, NULL);
    add_stack(frames, resolver, stack);
    if (model_has_heaps(model))
        add_frames(frames, resolver_label(resolver, "heap", stack_labels_of(model, stack).heap), 1, NULL);
}

void source_frames_free(struct source_frames *frames) {
    free(frames->frames);
    free(frames->verdicts);
    *frames = (struct source_frames){0};
}

/* Frames whose function is not known are called by their place, in brackets. */
static bool is_named(const struct source_frame *frame) {
    return frame->symbol->function[0] != '[';
}

static bool is_call(const struct source_frame *frame) {
    return !frame->symbol->given;
}

/* A call of which something is known: its module or its function. */
static bool is_known_call(const struct source_frame *frame) {
    return is_call(frame) && (frame->module || is_named(frame));
}

size_t source_frames_innermost(const struct source_frames *frames) {
    for (size_t i = frames->first; i < frames->end; i++)
        if (is_call(&frames->frames[i])) return i;
    return frames->first;
}

/* Index of the innermost scope if nothing is known of any call, else `end`. A frame such as "[cut]", which says
 * only that calls are missing, is worse as a site than a scope. */
static size_t find_scope_without_calls(const struct source_frames *frames) {
    size_t scope = frames->end;
    for (size_t i = frames->first; i < frames->end; i++) {
        const struct source_frame *frame = &frames->frames[i];
        if (is_known_call(frame)) return frames->end;
        if (!is_call(frame) && scope == frames->end) scope = i;
    }
    return scope;
}

/* The kind of wrapper that the frame is on this stack. Blocks of a heap that the program manages itself are
 * reported by that heap's allocator, whose functions usually have "alloc" in their names. */
static enum allocation_wrapper wrapper_on_stack(
    const struct source_frames *frames, const struct source_frame *frame) {
    enum allocation_wrapper wrapper = wrapper_of_frame(frames, frame);
    bool is_own_allocator =
        wrapper == WRAPPER_NOT && frames->in_own_heap && strcasestr(frame->symbol->function, "alloc");
    return is_own_allocator ? WRAPPER_IF_NAMED : wrapper;
}

/* Index of the innermost interpreted frame, or `end`. The line that an interpreter executes is what asks for the
 * memory that the interpreter and its libraries allocate. */
static size_t find_interpreted(const struct source_frames *frames) {
    size_t i = frames->first;
    while (i < frames->end && !frames->frames[i].symbol->interpreted) i++;
    return i;
}

/* Index of the innermost frame that is no allocation wrapper, by the rules of each kind of wrapper. */
static size_t find_outside_wrappers(const struct source_frames *frames) {
    size_t none = frames->count, wrapper = none, library = none;
    for (size_t i = frames->first; i < frames->end; i++) {
        const struct source_frame *frame = &frames->frames[i];
        if (!is_call(frame)) continue;
        enum allocation_wrapper verdict = wrapper_on_stack(frames, frame);
        if (verdict == WRAPPER_IF_NAMED && wrapper == none) wrapper = i;
        if (verdict == WRAPPER_IF_SOURCE && library == none) library = i;
        if (verdict != WRAPPER_NOT) continue;
        if (frame->symbol->line > 0) return i;
        if (library == none && (is_named(frame) || wrapper == none)) return i;
        break;
    }
    return library != none ? library : wrapper != none ? wrapper : source_frames_innermost(frames);
}

size_t source_frames_site(const struct source_frames *frames, bool raw_sites) {
    if (raw_sites) return source_frames_innermost(frames);
    size_t scope = find_scope_without_calls(frames);
    if (scope < frames->end) return scope;
    size_t interpreted = find_interpreted(frames);
    return interpreted < frames->end ? interpreted : find_outside_wrappers(frames);
}

/* Whether frames further out cannot change the site any more. Interpreted frames are an exception, for which the
 * caller looks separately: they are the site wherever they are. */
static bool settles_site(const struct source_frames *frames, const struct source_frame *frame) {
    return frame->symbol->interpreted ||
           (is_known_call(frame) && wrapper_on_stack(frames, frame) == WRAPPER_NOT);
}

/* Index of the innermost interpreted frame word, or 0 if there is none. */
static uint32_t innermost_interpreted_word(const struct model_stack *stack) {
    for (uint32_t i = 0; i < stack->frame_count; i++)
        if (stack->frames[i] >> FRAME_KIND_SHIFT == FRAME_PYTHON) return i;
    return 0;
}

void source_frames_expand_to_site(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack) {
    start(frames);
    if (!stack->frame_count) {
        add_stack(frames, resolver, stack);
        return;
    }
    frames->first = 0;
    frames->in_own_heap = stack->in_own_heap;
    bool settled = false;
    uint32_t least = innermost_interpreted_word(stack);
    for (uint32_t i = 0; i < stack->frame_count && (!settled || i <= least); i++) {
        size_t before = frames->count;
        add_frame(frames, resolver, stack, i);
        for (size_t k = before; k < frames->count && !settled; k++)
            settled = settles_site(frames, &frames->frames[k]);
    }
    frames->end = frames->count;
}
