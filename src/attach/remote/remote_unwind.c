/* The stack walk over a copied stack. It takes the steps of unwind/frame_step.h, as unwind/capture.c does inside the
 * program, and stores the same frames in the same order. It differs in two ways: all registers are followed from the
 * start, and nothing is read but the copy.
 *
 * Every walk ends: the stack pointer grows with every frame and stays within the copy. */
#include <string.h>

#include "attach/remote/remote_private.h"
#include "core/recording.h"
#include "unwind/frame_output.h"
#include "unwind/frame_step.h"

#define STACK_SIZE_MAX                                                                                       \
    (UINT64_C(256) << 20) /* what lies further above a copy is not part of the copied stack */

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

struct stack_walk {
    struct remote *remote;
    const uint8_t *stack;
    uint64_t low, size; /* the copy: the word at low + n can be read if n < size */
    struct frame_registers frame;
    uint64_t unreadable; /* the address that was last asked for and is not in the copy */
    bool elsewhere;      /* the walk has come to another stack than the one that was copied */
    enum remote_end end; /* once the walk has ended */
};

static inline bool walk_read(struct stack_walk *walk, uint64_t address, uint64_t *ret_word) {
    uint64_t inside = address - walk->low;
    if (!LIKELY(inside < walk->size && address % 8 == 0)) {
        walk->unreadable = address;
        return false;
    }
    memcpy(ret_word, walk->stack + inside, 8);
    return true;
}

static bool walk_is_code(struct stack_walk *walk, uint64_t address) {
    return remote_covering(walk->remote, address) != NULL;
}

/* How a walk ends that needs a word which is not in the copy: short if the word lies above the copied part of the
 * stack, lost if it cannot be a word of this stack. */
static enum remote_end end_at(const struct stack_walk *walk, uint64_t address) {
    uint64_t inside = address - walk->low;
    bool above = inside >= walk->size && inside < walk->size + STACK_SIZE_MAX;
    return address % 8 == 0 && (above || walk->elsewhere) ? REMOTE_SHORT : REMOTE_LOST;
}

/* Whether a step led on. If not, notes how the walk ends. */
static inline bool leads_on(struct stack_walk *walk, enum frame_step outcome) {
    if (LIKELY(outcome == STEP_ON)) return true;
    walk->end = outcome == STEP_START        ? REMOTE_COMPLETE
                : outcome == STEP_UNREADABLE ? end_at(walk, walk->unreadable)
                                             : REMOTE_LOST;
    return false;
}

/* ---- Steps: to the caller's frame, or false at the end ---- */

static inline bool step_call(struct stack_walk *walk, struct rule rule) {
    return leads_on(walk, frame_step_call(&walk->frame, rule, true, walk_read, walk));
}

static __attribute__((noinline)) bool step_signal(struct stack_walk *walk) {
    uint64_t handler_sp = walk->frame.base[BASE_SP];
    if (!leads_on(walk, frame_step_signal(&walk->frame, walk_read, walk))) return false;
    uint64_t sp = walk->frame.base[BASE_SP];
    if (sp <= handler_sp || sp - walk->low >= walk->size) {
        /* The handler ran on a stack of its own: the stack that it interrupted was not copied. */
        walk->elsewhere = true;
        walk->size = 0;
    }
    return true;
}

static __attribute__((noinline)) bool step_frame_pointer(struct stack_walk *walk) {
    return leads_on(walk, frame_step_frame_pointer(&walk->frame, walk_is_code, walk_read, walk));
}

static __attribute__((noinline)) bool step_epilogue(struct stack_walk *walk) {
    const struct mapping *mapping = remote_covering(walk->remote, walk->frame.pc);
    return leads_on(walk, mapping ? frame_step_epilogue(&walk->frame, mapping, walk_read, walk) : STEP_LOST);
}

static __attribute__((noinline)) bool step_other(struct stack_walk *walk, struct rule rule) {
    switch (rule_kind(rule)) {
    case RULE_REALIGNED:
        return step_call(walk, rule);
    case RULE_SIGNAL:
        return step_signal(walk);
    case RULE_FRAME_POINTER:
        return step_frame_pointer(walk) || (walk->end == REMOTE_LOST && step_epilogue(walk));
    case RULE_EPILOGUE:
        return step_epilogue(walk) || (walk->end == REMOTE_LOST && step_frame_pointer(walk));
    case RULE_START:
        return leads_on(walk, STEP_START);
    default:
        return leads_on(walk, STEP_LOST);
    }
}

/* ---- The walk ---- */

static enum remote_end walk_run(struct stack_walk *walk, struct frame_output *output) {
    for (bool first = true;; first = false) {
        uint64_t pc = walk->frame.pc;
        if (!frame_step_is_possible(pc)) return pc == 0 && !first ? REMOTE_COMPLETE : REMOTE_LOST;
        uint64_t instruction = pc - 1 + walk->frame.interrupted;
        struct rule rule = remote_rule(walk->remote, instruction);
        if (rule_kind(rule) == RULE_OUTSIDE && !first) return REMOTE_LOST;
        frame_output_store(output, instruction + 1 + rule_begins_function(rule), 0);
        if (!(LIKELY(rule_kind(rule) == RULE_CALL) ? step_call(walk, rule) : step_other(walk, rule)))
            return walk->end;
    }
}

/* Puts the stored frames in order. Where the copy was too short, the last word says that frames are missing. */
static uint32_t finish(struct frame_output *output, enum remote_end end) {
    if (end != REMOTE_SHORT || output->cut) return frame_output_finish(output, end != REMOTE_SHORT);
    if (output->count == output->max) output->count--;
    output->frames[output->count++] = FRAME_OUTPUT_CUT;
    return output->count;
}

uint32_t remote_unwind(struct remote *remote, const struct unwind_registers *registers, const void *stack,
    uint32_t stack_size, uint64_t *frames, uint32_t max, enum remote_end *ret_end) {
    *ret_end = REMOTE_LOST;
    if (max == 0) return 0;
    for (bool again = false;; again = true) {
        struct stack_walk walk = {.remote = remote,
            .stack = stack,
            .low = registers->sp,
            .size = stack_size < 8 ? 0 : stack_size - 7};
        struct frame_output output = {.frames = frames, .max = max};
        uint64_t newest = remote_newest_module(remote);
        frame_step_begin(&walk.frame, registers);
        *ret_end = walk_run(&walk, &output);
        remote->stack_end = walk.frame.base[BASE_SP];
        if (again || *ret_end != REMOTE_LOST || !remote_changed(remote, newest))
            return finish(&output, *ret_end);
    }
}

uint64_t remote_stack_end(const struct remote *remote) {
    return remote->stack_end;
}
