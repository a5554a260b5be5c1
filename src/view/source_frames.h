/* The source frames of a stack: its frames from the leaf outwards, with inlined calls as frames of their own, and
 * which of them is the stack's site.
 *
 * Names that the program gave (scopes, threads, types, heaps) are frames as well. They are no code: `symbol->given`
 * tells them apart from calls.
 *
 *     [type node]   malloc   operator new   Tree::insert   [scope load]   main   [thread pool-1]   [heap arena]
 *                  └ first                  └ the site                                           └ end
 */
#ifndef MALLOSCOPE_VIEW_SOURCE_FRAMES_H
#define MALLOSCOPE_VIEW_SOURCE_FRAMES_H

#include "model/model.h"
#include "symbol/symbol.h"

struct source_frame {
    const struct symbol *symbol;
    const struct model_module *module; /* NULL: not known, or the frame is no code */
};

/* A buffer that is filled with one stack after the other. It starts zeroed. */
struct source_frames {
    struct source_frame *frames; /* leaf first */
    size_t count;                /* at least 1 once a stack was put in */
    size_t capacity;
    size_t first,
        end; /* the frames of the stack itself; a type may stand before them and a heap behind them */
    bool in_own_heap; /* the block is in a heap that the program manages itself, not in malloc's */

    /* Caches. */
    struct wrapper_verdict *verdicts;  /* on functions that were met lately */
    const struct model_module *module; /* the module that was met last */
    bool module_is_recorder;
};

/* Puts a stack in: its calls, scopes and thread. */
void source_frames_expand(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack);
/* Puts a stack in, and also the type of what was allocated as the innermost frame, if it is known, and the heap as
 * the outermost frame, if the model has heaps besides malloc's. */
void source_frames_expand_labelled(struct source_frames *frames, const struct model *model,
    struct resolver *resolver, const struct model_stack *stack);
/* Puts in only as many frames of the stack, from the leaf on, as source_frames_site needs to tell the site. */
void source_frames_expand_to_site(
    struct source_frames *frames, struct resolver *resolver, const struct model_stack *stack);
void source_frames_free(struct source_frames *frames);

/* The function of the one frame of a stack that has no frames: what was allocated while the stack table was full. */
extern const struct symbol source_frames_dropped;

/* Index of the innermost call; of the innermost scope or thread if there are no calls. */
size_t source_frames_innermost(const struct source_frames *frames);

/* Index of the site: the innermost call that is no allocation wrapper (view/allocation_wrapper.h); of an
 * interpreted program, its innermost line. If nothing is known of the calls, the innermost scope is the site. With
 * `raw_sites` it is the innermost call. */
size_t source_frames_site(const struct source_frames *frames, bool raw_sites);

/* Whether trees show the frame when the site is `site`: frames from the site outwards, and inside of it only what
 * the program named. */
static inline bool source_frames_shows(const struct source_frames *frames, size_t site, size_t index) {
    return index >= site || frames->frames[index].symbol->given;
}

#endif
