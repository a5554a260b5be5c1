/* The walk over a copied stack. It differs from unwind/capture.c in that all registers are followed at once
 * and that nothing is read but the copy; frames and their order are the same.
 *
 * It ends: the stack pointer grows with every frame and stays within the copy. */
#include <string.h>

#include "attach/remote/remote_private.h"
#include "core/recording.h"
#include "unwind/epilogue.h"
#include "unwind/frame_output.h"
#include "unwind/return_address.h"

#define STACK_SIZE_MAX (UINT64_C(256) << 20) /* what lies further above a copy is not the same stack */

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* ---- What is stored ---- */

/* A copy that was too short ends with a cut. */
static uint32_t finish(struct frame_output *output, enum remote_end end) {
    if (end != REMOTE_SHORT || output->cut) return frame_output_finish(output, end != REMOTE_SHORT);
    if (output->count == output->max) output->count--;
    output->frames[output->count++] = FRAME_OUTPUT_CUT;
    return output->count;
}

/* ---- The copy ---- */

struct walk {
    struct remote *remote;
    const uint8_t *stack;
    uint64_t low, size; /* addresses of the stack that were copied: whole words can be read below `size` */
    uint64_t pc;
    uint64_t base[BASE_COUNT]; /* sp, fp and the other registers that survive calls, by enum rule_base */
    uint64_t link;             /* aarch64: x30 of an interrupted frame */
    uint32_t lost;             /* bit set of registers whose value is not known */
    bool interrupted;          /* pc is not a return address but where a signal came */
    bool elsewhere;            /* it has come to another stack than the one that was copied */
    enum remote_end end;       /* once it has ended */
};

static bool walk_end(struct walk *walk, enum remote_end end) {
    walk->end = end;
    return false;
}

static inline bool stack_read(const struct walk *walk, uint64_t address, uint64_t *ret_word) {
    uint64_t inside = address - walk->low;
    if (inside >= walk->size || address % 8 != 0) return false;
    memcpy(ret_word, walk->stack + inside, 8);
    return true;
}

/* Ends the walk because the word at an address is not in the copy. */
static bool walk_end_beyond(struct walk *walk, uint64_t address) {
    uint64_t inside = address - walk->low;
    bool above = inside >= walk->size && inside < walk->size + STACK_SIZE_MAX;
    return walk_end(walk, address % 8 == 0 && (above || walk->elsewhere) ? REMOTE_SHORT : REMOTE_LOST);
}

static inline bool need(struct walk *walk, uint64_t address, uint64_t *ret_word) {
    return LIKELY(stack_read(walk, address, ret_word)) || walk_end_beyond(walk, address);
}

/* ---- Steps: to the caller, or false at the end ---- */

/* Where the kernel saves what was interrupted, from the stack pointer of the trampoline on. */
#if defined(__x86_64__)
enum {
    SIGNAL_PC = 168,
    SIGNAL_LINK = 168,
    SIGNAL_SP = 160,
    SIGNAL_FP = 120,
    SIGNAL_RBX = 128,
    SIGNAL_R12 = 72,
};
#else
enum {
    SIGNAL_PC = 568,
    SIGNAL_LINK = 552,
    SIGNAL_SP = 560,
    SIGNAL_FP = 544,
};
#endif

static __attribute__((noinline)) bool step_signal(struct walk *walk) {
    uint64_t frame = walk->base[BASE_SP], sp;
    if (!need(walk, frame + SIGNAL_SP, &sp) || !need(walk, frame + SIGNAL_PC, &walk->pc) ||
        !need(walk, frame + SIGNAL_LINK, &walk->link) || !need(walk, frame + SIGNAL_FP, &walk->base[BASE_FP]))
        return false;
#if defined(__x86_64__)
    if (!need(walk, frame + SIGNAL_RBX, &walk->base[BASE_RBX])) return false;
    for (unsigned i = 0; i < 4; i++)
        if (!need(walk, frame + SIGNAL_R12 + 8 * i, &walk->base[BASE_R12 + i])) return false;
#endif
    if (sp <= frame || sp - walk->low >= walk->size) {
        /* The handler ran on a stack of its own: the one it interrupted was not copied. */
        walk->elsewhere = true;
        walk->size = 0;
    }
    walk->base[BASE_SP] = sp;
    walk->lost = 0;
    walk->interrupted = true;
    return true;
}

/* Code without unwind information. The frame pointer is believed if it points up the stack and has a return
 * address into code beside it. */
static __attribute__((noinline)) bool step_frame_pointer(struct walk *walk) {
    uint64_t fp = walk->base[BASE_FP], next, pc;
    if (walk->lost >> BASE_FP & 1) return walk_end(walk, REMOTE_LOST);
    if (fp == 0) return walk_end(walk, REMOTE_COMPLETE);
    if (fp < walk->base[BASE_SP]) return walk_end(walk, REMOTE_LOST);
    if (!need(walk, fp, &next) || !need(walk, fp + 8, &pc)) return false;
    pc = return_address_without_signature(pc);
    if (pc - PC_MIN >= PC_MAX - PC_MIN || !remote_covering(walk->remote, pc - 1))
        return walk_end(walk, REMOTE_LOST);
    walk->pc = pc;
    walk->base[BASE_SP] = fp + 16;
    walk->base[BASE_FP] = next;
    walk->lost |= ~(1u << BASE_FP | 1u << BASE_SP);
    walk->interrupted = false;
    return true;
}

/* The same, where it is about to return. */
static __attribute__((noinline)) bool step_epilogue(struct walk *walk) {
    struct epilogue epilogue;
    const struct mapping *mapping = remote_covering(walk->remote, walk->pc);
    if (!mapping || !epilogue_read(mapping, walk->pc, &epilogue)) return walk_end(walk, REMOTE_LOST);
    uint64_t sp = walk->base[BASE_SP], pc;
    if (!need(walk, sp + epilogue.return_place, &pc)) return false;
    for (unsigned base = BASE_FP; base < BASE_COUNT; base++) { /* all below the return address */
        if (!epilogue.place[base]) continue;
        if (!need(walk, sp + epilogue.place[base] - 1, &walk->base[base])) return false;
        walk->lost &= ~(1u << base);
    }
    walk->pc = pc;
    walk->base[BASE_SP] = sp + epilogue.return_place + 8;
    walk->interrupted = false;
    return true;
}

static inline void restore(struct walk *walk, unsigned base, uint64_t anchor, int64_t place) {
    if (place == 0) return;
    if (place != RULE_LOST && stack_read(walk, anchor + (uint64_t)place * 8, &walk->base[base]))
        walk->lost &= ~(1u << base);
    else
        walk->lost |= 1u << base;
}

static inline bool step_call(struct walk *walk, struct rule rule) {
    unsigned base = rule_base(rule);
    if (base >= BASE_COUNT || walk->lost >> base & 1) return walk_end(walk, REMOTE_LOST);
    uint64_t value = walk->base[base], sp = walk->base[BASE_SP];
    uint64_t cfa = value + (uint64_t)rule_offset(rule), anchor = cfa;
    if (rule_kind(rule) == RULE_REALIGNED) {
        if (!need(walk, cfa, &cfa)) return false;
        anchor = value + 8;
    }
#if defined(__x86_64__)
    if (cfa <= sp) return walk_end(walk, REMOTE_LOST);
    if (!need(walk, cfa - 8, &walk->pc)) return false;
    if (rule.saved) {
        restore(walk, BASE_RBX, anchor, (int16_t)rule.saved);
        restore(walk, BASE_R12, anchor, (int16_t)(rule.saved >> 16));
        restore(walk, BASE_R13, anchor, (int16_t)(rule.saved >> 32));
        restore(walk, BASE_R14, anchor, (int16_t)(rule.saved >> 48));
    }
    restore(walk, BASE_R15, anchor, rule_saved_last(rule));
#else
    /* The first frame of a leaf function may be empty, with the return address in its register. */
    if (cfa < sp || (cfa == sp && !walk->interrupted)) return walk_end(walk, REMOTE_LOST);
    if (rule_saved_last(rule) == 0) {
        if (!walk->interrupted) return walk_end(walk, REMOTE_LOST);
        walk->pc = walk->link;
    } else if (!need(walk, anchor + (uint64_t)rule_saved_last(rule) * 8, &walk->pc)) {
        return false;
    }
    walk->pc = return_address_without_signature(walk->pc);
#endif
    restore(walk, BASE_FP, anchor, rule_saved_fp(rule));
    walk->base[BASE_SP] = cfa;
    walk->interrupted = false;
    return true;
}

static __attribute__((noinline)) bool step_other(struct walk *walk, struct rule rule) {
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
        return walk_end(walk, REMOTE_COMPLETE);
    default:
        return walk_end(walk, REMOTE_LOST);
    }
}

static enum remote_end walk_run(struct walk *walk, struct frame_output *output) {
    for (bool first = true;; first = false) {
        uint64_t pc = walk->pc;
        if (pc - PC_MIN >= PC_MAX - PC_MIN) return pc == 0 && !first ? REMOTE_COMPLETE : REMOTE_LOST;
        uint64_t instruction = pc - 1 + walk->interrupted;
        struct rule rule = remote_rule(walk->remote, instruction);
        if (rule_kind(rule) == RULE_OUTSIDE && !first) return REMOTE_LOST;
        frame_output_store(output, instruction + 1 + rule_begins_function(rule), 0);
        if (!(LIKELY(rule_kind(rule) == RULE_CALL) ? step_call(walk, rule) : step_other(walk, rule)))
            return walk->end;
    }
}

uint32_t remote_unwind(struct remote *remote, const struct unwind_registers *registers, const void *stack,
    uint32_t stack_size, uint64_t *frames, uint32_t max, enum remote_end *ret_end) {
    const struct walk begin = {.remote = remote,
        .stack = stack,
        .low = registers->sp,
        .size = stack_size < 8 ? 0 : stack_size - 7,
        .pc = registers->pc,
        .base = {
            [BASE_SP] = registers->sp,
            [BASE_FP] = registers->fp,
#if defined(__x86_64__)
            [BASE_RBX] = registers->rbx,
            [BASE_R12] = registers->r12,
            [BASE_R13] = registers->r13,
            [BASE_R14] = registers->r14,
            [BASE_R15] = registers->r15,
#endif
        }};
    *ret_end = REMOTE_LOST;
    if (max == 0) return 0;
    for (bool again = false;; again = true) {
        struct walk walk = begin;
        struct frame_output output = {.frames = frames, .max = max};
        uint64_t newest = remote_newest_module(remote);
        *ret_end = walk_run(&walk, &output);
        remote->stack_end = walk.base[BASE_SP];
        if (again || *ret_end != REMOTE_LOST || !remote_changed(remote, newest))
            return finish(&output, *ret_end);
    }
}

uint64_t remote_stack_end(const struct remote *remote) {
    return remote->stack_end;
}
