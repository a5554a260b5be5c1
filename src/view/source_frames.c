#include "view/source_frames.h"
#include "model/stack_labels.h"
#include "view/allocation_wrapper.h"

#include <stdlib.h>
#include <string.h>

/* Neighbouring stacks have the same functions. A resolver keeps equal texts of a file once, so functions are
 * told apart by where their names are. */
#define VERDICTS 1024

struct verdict {
    const char *function, *module;
    enum allocation_wrapper plumbing;
};

static enum allocation_wrapper wrapper_of_frame(
    const struct source_frames *frames, const struct source_frame *frame) {
    const char *function = frame->symbol->function, *module = frame->module ? frame->module->path : NULL;
    if (!frames->verdicts) return allocation_wrapper_of(function, module);
    uint64_t hash = ((uintptr_t)function * 31 + (uintptr_t)module) * UINT64_C(0x9e3779b97f4a7c15);
    struct verdict *verdict = &frames->verdicts[hash >> 32 & (VERDICTS - 1)];
    if (verdict->function != function || verdict->module != module)
        *verdict = (struct verdict){function, module, allocation_wrapper_of(function, module)};
    return verdict->plumbing;
}

static bool add_frames(struct source_frames *frames, const struct symbol *symbols, size_t count,
    const struct model_module *module) {
    if (frames->count + count > frames->capacity) {
        size_t capacity = 2 * (frames->count + count) + 32;
        void *grown = realloc(frames->frames, capacity * sizeof *frames->frames);
        if (!grown) return false;
        frames->frames = grown;
        frames->capacity = capacity;
    }
    for (size_t i = 0; i < count; i++)
        frames->frames[frames->count++] = (struct source_frame){&symbols[i], module};
    return true;
}

static void start(struct source_frames *frames) {
    if (!frames->verdicts) frames->verdicts = calloc(VERDICTS, sizeof *frames->verdicts);
    frames->count = 0;
}

/* The recorder's own frames: an allocator that it calls may in turn allocate. */
static bool is_recorder(struct source_frames *frames, const struct model_module *module) {
    if (module == frames->module) return frames->module_is_recorder;
    const char *name = module ? strrchr(module->path, '/') : NULL;
    frames->module = module;
    return frames->module_is_recorder = name && strcmp(name, "/libmalloscope.so") == 0;
}

static bool add_stack(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack) {
    /* The stack that collects what the stack table had no room for has no frames. */
    static const struct symbol nothing = {.function = "[dropped]"};
    frames->first = frames->count;
    frames->in_own_heap = stack->in_own_heap;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        struct symbol_list list = resolver_look_up(resolver, stack, i);
        if (i > 0 && is_recorder(frames, list.module)) continue;
        if (!add_frames(frames, list.frames, list.count, list.module)) return false;
    }
    if (!stack->frame_count && !add_frames(frames, &nothing, 1, NULL)) return false;
    frames->end = frames->count;
    return true;
}

bool source_frames_expand(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack) {
    start(frames);
    return add_stack(frames, resolver, stack);
}

bool source_frames_expand_labelled(struct source_frames *frames, const struct model *model,
    struct resolver *resolver, const struct model_stack *stack) {
    start(frames);
    if (stack->type && !add_frames(frames, resolver_label(resolver, "type", stack->type), 1, NULL))
        return false;
    if (!add_stack(frames, resolver, stack)) return false;
    const char *heap = stack_labels_of(model, stack).heap;
    return !model_has_heaps(model) || add_frames(frames, resolver_label(resolver, "heap", heap), 1, NULL);
}

void source_frames_free(struct source_frames *frames) {
    free(frames->frames);
    free(frames->verdicts);
    *frames = (struct source_frames){0};
}

static bool is_named(const struct source_frame *frame) {
    return frame->symbol->function[0] != '[';
}

static bool is_call(const struct source_frame *frame) {
    return !frame->symbol->given;
}

size_t source_frames_innermost(const struct source_frames *frames) {
    for (size_t i = frames->first; i < frames->end; i++)
        if (is_call(&frames->frames[i])) return i;
    return frames->first;
}

/* The innermost scope, if nothing is known of the calls: that some are missing is not much. Otherwise the
 * end. */
static size_t find_scope_without_calls(const struct source_frames *frames) {
    size_t scope = frames->end;
    for (size_t i = frames->first; i < frames->end; i++) {
        const struct source_frame *frame = &frames->frames[i];
        if (is_call(frame) && (frame->module || is_named(frame))) return frames->end;
        if (!is_call(frame) && scope == frames->end) scope = i;
    }
    return scope;
}

/* Who reports to a heap of the program's own is usually that heap's allocator, and so called. */
static bool is_allocator(const struct source_frame *frame) {
    return strcasestr(frame->symbol->function, "alloc") != NULL;
}

/* What an interpreter and its libraries allocate, the line that they work on asks for. */
static size_t find_interpreted(const struct source_frames *frames) {
    size_t i = frames->first;
    while (i < frames->end && !frames->frames[i].symbol->interpreted) i++;
    return i;
}

size_t source_frames_site(const struct source_frames *frames, bool raw_sites) {
    if (raw_sites) return source_frames_innermost(frames);
    size_t scope = find_scope_without_calls(frames);
    if (scope < frames->end) return scope;
    size_t interpreted = find_interpreted(frames);
    if (interpreted < frames->end) return interpreted;

    size_t none = frames->count, wrapper = none, library = none;
    for (size_t i = frames->first; i < frames->end; i++) {
        const struct source_frame *frame = &frames->frames[i];
        if (!is_call(frame)) continue;
        enum allocation_wrapper verdict = wrapper_of_frame(frames, frame);
        if (verdict == WRAPPER_NOT && frames->in_own_heap && is_allocator(frame)) verdict = WRAPPER_IF_NAMED;
        if (verdict == WRAPPER_IF_NAMED && wrapper == none) wrapper = i;
        if (verdict == WRAPPER_IF_SOURCE && library == none) library = i;
        if (verdict != WRAPPER_NOT) continue;
        if (frame->symbol->line > 0) return i;
        if (library == none && (is_named(frame) || wrapper == none)) return i;
        break;
    }
    return library != none ? library : wrapper != none ? wrapper : source_frames_innermost(frames);
}

/* A call that is known and no plumbing: what is further out does not make another one the site, unless it is
 * interpreted. */
static bool settles_site(const struct source_frames *frames, const struct source_frame *frame) {
    return frame->symbol->interpreted || (is_call(frame) && (frame->module || is_named(frame)) &&
                                             wrapper_of_frame(frames, frame) == WRAPPER_NOT);
}

static bool is_python(uint64_t word) {
    return word >> FRAME_KIND_SHIFT == FRAME_PYTHON;
}

bool source_frames_expand_to_site(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack) {
    if (!stack->frame_count) return source_frames_expand(frames, resolver, stack);
    uint32_t least = 0; /* words that have to be looked at: up to the first interpreted one */
    while (least < stack->frame_count && !is_python(stack->frames[least])) least++;
    if (least == stack->frame_count) least = 0;
    start(frames);
    frames->first = 0;
    bool settled = false;
    for (uint32_t i = 0; i < stack->frame_count && (!settled || i <= least); i++) {
        struct symbol_list list = resolver_look_up(resolver, stack, i);
        if (i > 0 && is_recorder(frames, list.module)) continue;
        if (!add_frames(frames, list.frames, list.count, list.module)) return false;
        for (size_t k = frames->count - list.count; k < frames->count && !settled; k++)
            settled = settles_site(frames, &frames->frames[k]);
    }
    frames->end = frames->count;
    return true;
}

int frame_filter_make(const char *text, struct frame_filter *ret_filter, struct problem *problem) {
    struct frame_filter filter = {.on = text != NULL};
    if (text) {
        int error = regcomp(&filter.expression, text, REG_EXTENDED | REG_NOSUB);
        if (error) {
            char reason[256];
            regerror(error, &filter.expression, reason, sizeof reason);
            return problem_set(problem, PROBLEM_USAGE,
                "write a POSIX extended regular expression, for instance 'parse|libxml'; put \\ before a "
                "character "
                "that is meant as it is",
                "'%s' is not a regular expression: %s", text, reason);
        }
        filter.size = 1024;
        filter.known = calloc(filter.size, sizeof *filter.known);
        filter.verdict = calloc(filter.size, 1);
        if (!filter.known || !filter.verdict) {
            frame_filter_free(&filter);
            return problem_set(problem, PROBLEM_FAILURE, NULL, "out of memory");
        }
    }
    *ret_filter = filter;
    return 0;
}

void frame_filter_free(struct frame_filter *filter) {
    if (filter->on) regfree(&filter->expression);
    free(filter->known);
    free(filter->verdict);
    *filter = (struct frame_filter){0};
}

bool frame_filter_matches_text(const struct frame_filter *filter, const char *text) {
    return !filter->on || (text && regexec(&filter->expression, text, 0, NULL, 0) == 0);
}

static size_t slot_of(const struct frame_filter *filter, const struct symbol *symbol) {
    size_t slot = ((uintptr_t)symbol >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    for (slot &= filter->size - 1; filter->known[slot] && filter->known[slot] != symbol;)
        slot = (slot + 1) & (filter->size - 1);
    return slot;
}

/* Stops remembering more when memory is short: slower, but right. */
static void grow(struct frame_filter *filter) {
    struct frame_filter larger = *filter;
    larger.size *= 2;
    larger.known = calloc(larger.size, sizeof *larger.known);
    larger.verdict = calloc(larger.size, 1);
    if (!larger.known || !larger.verdict) {
        free(larger.known);
        free(larger.verdict);
        return;
    }
    for (size_t i = 0; i < filter->size; i++)
        if (filter->known[i]) {
            size_t slot = slot_of(&larger, filter->known[i]);
            larger.known[slot] = filter->known[i];
            larger.verdict[slot] = filter->verdict[i];
        }
    free(filter->known);
    free(filter->verdict);
    *filter = larger;
}

static bool matches(struct frame_filter *filter, const struct source_frame *frame) {
    size_t slot = slot_of(filter, frame->symbol);
    if (filter->known[slot]) return filter->verdict[slot];
    bool result = frame_filter_matches_text(filter, frame->symbol->function) ||
                  frame_filter_matches_text(filter, frame->symbol->given) ||
                  frame_filter_matches_text(filter, frame->symbol->file) ||
                  (frame->module && frame_filter_matches_text(filter, frame->module->path));
    if (filter->used < filter->size / 2) {
        filter->known[slot] = frame->symbol;
        filter->verdict[slot] = result;
        if (++filter->used == filter->size / 2) grow(filter);
    }
    return result;
}

bool frame_filter_keeps(struct frame_filter *filter, const struct source_frames *frames) {
    if (!filter->on) return true;
    for (size_t i = 0; i < frames->count; i++)
        if (matches(filter, &frames->frames[i])) return true;
    return false;
}
