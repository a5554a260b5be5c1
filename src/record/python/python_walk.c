/* The walk over the calling thread's Python frames.
 *
 * A frame is stored by its address first, and becomes a frame word at the end. In a deep recursion most frames fall out
 * in the middle (unwind/frame_output.h), and need not be looked up. */
#include "platform/safe_read.h"
#include "record/python/python_internals.h"
#include "unwind/frame_output.h"

#include <pthread.h>

/* Who has the memory of a frame; the values that matter here. */
enum owner { OWNED_BY_GENERATOR = 1, OWNED_BY_C_STACK = 3 };

/* ---- the thread ---- */

/* Up to 3.11 the interpreter says only which state holds the lock. That may be another thread's, and be freed while it
 * is looked at. So it is compared by its address with the calling thread's own. A thread that works for several
 * interpreters has several states, of which only the first is known: then the thread id in the holder's state tells,
 * which is read in a way that cannot fault. */
static const void *own_state_up_to_3_11(void) {
    const void *holder = python.interpreter.thread_state(), *own = python.interpreter.own_thread_state(), *id;
    if (!holder || !own || holder == own) return holder ? own : NULL;
    bool is_there = safe_read(&id, (uintptr_t)holder + python.layout.thread.id, sizeof id);
    return is_there && id == (const void *)pthread_self() ? holder : NULL;
}

const void *python_walk_thread(void) {
    return python.interpreter.own_thread_state ? own_state_up_to_3_11() : python.interpreter.thread_state();
}

/* ---- the walk ---- */

/* Bytes from the code's first instruction to the one that the frame is at. */
static int64_t instruction_of(const void *frame, const void *code) {
    const struct layout *layout = &python.layout;
    if (layout->shape >= SHAPE_ENTRIES)
        return (int64_t)((uintptr_t)pointer_at(frame, layout->frame.instruction) - (uintptr_t)code -
                         layout->code.instructions);
    int64_t instruction = number_at(frame, layout->frame.instruction);
    if (instruction < 0) instruction = 0;
    return layout->minor == 10 ? instruction * 2 : instruction; /* 3.10 counts instructions of two bytes */
}

static uint64_t word_of(const void *frame) {
    const void *code = object_at(frame, python.layout.frame.code);
    return python_code_word(code, (uint32_t)instruction_of(frame, code));
}

/* Whether the function has begun. Before that, while its frame is being set up, it has no line yet; what is allocated
 * then is its caller's. A generator's frame counts as begun in any case. */
static bool has_begun(const void *frame, const void *code) {
    const struct layout *layout = &python.layout;
    return layout->shape < SHAPE_ENTRIES ||
           *((const uint8_t *)frame + layout->frame.owner) == OWNED_BY_GENERATOR ||
           instruction_of(frame, code) >= 2 * (int64_t)number_at(code, layout->code.first_traceable);
}

/* Stores a frame that runs Python code. `place`: as in struct python_stack. */
static void keep(struct frame_output *walk, const void *frame, const void *place) {
    const void *code = object_at(frame, python.layout.frame.code);
    if (pointer_at(code, OBJECT_TYPE) != python.interpreter.code_type || !has_begun(frame, code)) return;
    frame_output_store(walk, (uintptr_t)frame, (uintptr_t)place);
}

/* Up to 3.10: one CFrame for each frame (3.10), or none (3.8 and 3.9). */
static void walk_objects(struct frame_output *walk, const void *thread) {
    const struct layout *layout = &python.layout;
    const void *cframe = layout->thread.cframe ? pointer_at(thread, layout->thread.cframe) : NULL;
    const void *frame = python_walk_top(thread);
    for (int i = 0; frame && i < FRAMES_WALKED; i++) {
        keep(walk, frame, cframe);
        frame = pointer_at(frame, layout->frame.previous);
        if (cframe) cframe = pointer_at(cframe, layout->cframe.previous);
    }
}

/* 3.11: one CFrame for each run; the outermost frame of a run is marked as its entry. */
static void walk_entries(struct frame_output *walk, const void *thread) {
    const struct layout *layout = &python.layout;
    const void *cframe = pointer_at(thread, layout->thread.top);
    const void *frame = python_walk_top(thread);
    for (int i = 0; frame && cframe && i < FRAMES_WALKED; i++) {
        keep(walk, frame, cframe);
        bool is_entry = *((const uint8_t *)frame + layout->frame.is_entry);
        if (is_entry) cframe = pointer_at(cframe, layout->cframe.previous);
        frame = pointer_at(frame, layout->frame.previous);
    }
}

static bool is_shim(const void *frame) {
    return *((const uint8_t *)frame + python.layout.frame.owner) >= OWNED_BY_C_STACK;
}

/* The shim of the run that `frame` belongs to: its address tells which C frame interprets the run. */
static const void *shim_of(const void *frame) {
    for (int i = 0; frame && !is_shim(frame) && i < FRAMES_WALKED; i++)
        frame = pointer_at(frame, python.layout.frame.previous);
    return frame;
}

/* From 3.12 on. */
static void walk_shims(struct frame_output *walk, const void *thread) {
    const void *frame = python_walk_top(thread), *shim = NULL;
    for (int i = 0; frame && i < FRAMES_WALKED; i++) {
        if (is_shim(frame)) {
            shim = NULL;
        } else {
            if (!shim) shim = shim_of(frame);
            keep(walk, frame, shim);
        }
        frame = pointer_at(frame, python.layout.frame.previous);
    }
}

/* Not inlined into recorder_sample, most of whose callers run no Python. */
__attribute__((noinline)) bool python_walk_frames(struct python_stack *stack) {
    const void *thread = python_walk_thread();
    if (!thread) return false;
    struct frame_output walk = {.frames = stack->frames, .places = stack->places, .max = stack->max};
    switch (python.layout.shape) {
    case SHAPE_OBJECTS:
    case SHAPE_OBJECTS_CFRAME:
        walk_objects(&walk, thread);
        break;
    case SHAPE_ENTRIES:
        walk_entries(&walk, thread);
        break;
    case SHAPE_SHIMS:
        walk_shims(&walk, thread);
        break;
    }
    stack->count = frame_output_finish(&walk, true);
    for (uint32_t i = 0; i < stack->count; i++)
        if (stack->frames[i] != FRAME_OUTPUT_CUT) stack->frames[i] = word_of((const void *)stack->frames[i]);
    return true;
}
