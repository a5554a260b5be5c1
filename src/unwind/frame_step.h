/* Steps of a stack walk: from the registers of a frame to those of its caller.
 *
 * capture.c walks the stack of the calling thread, attach/remote/remote_unwind.c a copy of another process's stack.
 * Both take these steps. They differ in how a word of the stack is read, and in how they tell that an address lies in
 * code; each passes its own functions, which the compiler puts inline. */
#ifndef MALLOSCOPE_UNWIND_FRAME_STEP_H
#define MALLOSCOPE_UNWIND_FRAME_STEP_H

#include "unwind/epilogue.h"
#include "unwind/return_address.h"
#include "unwind/rule.h"
#include "unwind/signal_frame.h"
#include "unwind/unwind.h"

/* The registers of one frame, as far as they are known. */
struct frame_registers {
    uint64_t pc;
    uint64_t base[BASE_COUNT]; /* sp, fp and the other registers that survive calls, by enum rule_base */
    uint64_t link;             /* aarch64: x30 of an interrupted frame */
    uint32_t lost;             /* bit set, by enum rule_base: the register's value is not known */
    bool interrupted;          /* pc is not a return address but where a signal came */
};

enum frame_step {
    STEP_ON,         /* the registers are those of the caller */
    STEP_START,      /* this is the outermost frame of the thread */
    STEP_LOST,       /* the caller cannot be found */
    STEP_UNREADABLE, /* nor here, because a word of the stack could not be read */
};

struct stack_walk; /* each of the two walks has its own */

/* Reads the word at an address of the stack. False if it is not readable, or the address is not a multiple of 8. */
typedef bool frame_read(struct stack_walk *walk, uint64_t address, uint64_t *ret_word);

/* Whether an address lies in executable memory. */
typedef bool frame_is_code(struct stack_walk *walk, uint64_t address);

#define FRAME_STEP static inline __attribute__((always_inline))

FRAME_STEP void frame_step_begin(struct frame_registers *frame, const struct unwind_registers *registers) {
    frame->pc = registers->pc;
    frame->base[BASE_SP] = registers->sp;
    frame->base[BASE_FP] = registers->fp;
#if defined(__x86_64__)
    frame->base[BASE_RBX] = registers->rbx;
    frame->base[BASE_R12] = registers->r12;
    frame->base[BASE_R13] = registers->r13;
    frame->base[BASE_R14] = registers->r14;
    frame->base[BASE_R15] = registers->r15;
#endif
    frame->link = 0;
    frame->lost = 0;
    frame->interrupted = false;
}

static inline bool frame_step_is_lost(const struct frame_registers *frame, unsigned base) {
    return frame->lost >> base & 1;
}

/* Whether a program's code can lie at a pc. */
static inline bool frame_step_is_possible(uint64_t pc) {
    return pc - PC_MIN < PC_MAX - PC_MIN;
}

/* ---- Code with unwind information ---- */

/* A register that the function saved `place` words from the anchor; 0 = it did not change the register. */
FRAME_STEP void frame_step_restore(struct frame_registers *frame, unsigned base, uint64_t anchor,
    int64_t place, frame_read *read, struct stack_walk *walk) {
    if (place == 0) return;
    if (place != RULE_LOST && read(walk, anchor + (uint64_t)place * 8, &frame->base[base]))
        frame->lost &= ~(1u << base);
    else
        frame->lost |= 1u << base;
}

/* The address at which the return address lies; 0 = it is in the link register. */
static inline uint64_t frame_step_return_place(struct rule rule, uint64_t cfa, uint64_t anchor) {
#if defined(__x86_64__)
    (void)rule, (void)anchor;
    return cfa - 8;
#else
    (void)cfa;
    return rule_saved_last(rule) ? anchor + (uint64_t)rule_saved_last(rule) * 8 : 0;
#endif
}

/* The CFA of a function whose stack pointer is not known, because the walk came to it by a frame pointer. The frame
 * pointer points to where the function saved its caller's, and the rule says how far that is from the CFA. */
static inline bool frame_step_cfa_by_frame_pointer(
    const struct frame_registers *frame, struct rule rule, uint64_t *ret_cfa) {
    int64_t place = rule_saved_fp(rule);
    if (rule_kind(rule) != RULE_CALL || rule_base(rule) != BASE_SP) return false;
    if (frame_step_is_lost(frame, BASE_FP) || place == 0 || place == RULE_LOST) return false;
    *ret_cfa = frame->base[BASE_FP] - (uint64_t)place * 8;
    return true;
}

/* RULE_CALL and RULE_REALIGNED. Without `all_registers` only sp and fp are followed. */
FRAME_STEP enum frame_step frame_step_call(struct frame_registers *frame, struct rule rule,
    bool all_registers, frame_read *read, struct stack_walk *walk) {
    unsigned base = rule_base(rule);
    if (base >= BASE_COUNT) return STEP_LOST;
    uint64_t value = frame->base[base], sp = frame->base[BASE_SP], cfa = value + (uint64_t)rule_offset(rule);
    if (frame_step_is_lost(frame, base) && !frame_step_cfa_by_frame_pointer(frame, rule, &cfa))
        return STEP_LOST;
    uint64_t anchor = cfa;
    if (rule_kind(rule) == RULE_REALIGNED) {
        if (!read(walk, cfa, &cfa)) return STEP_UNREADABLE;
        anchor = value + 8;
    }
    /* The frame of an interrupted function may be empty, and the return address still in its register. */
    uint64_t place = frame_step_return_place(rule, cfa, anchor);
    bool in_register = place == 0 && frame->interrupted;
    if (cfa < sp || (cfa == sp && !in_register) || (place == 0 && !in_register)) return STEP_LOST;
    if (in_register)
        frame->pc = frame->link;
    else if (!read(walk, place, &frame->pc))
        return STEP_UNREADABLE;
#if defined(__x86_64__)
    if (all_registers) {
        if (rule.saved) {
            frame_step_restore(frame, BASE_RBX, anchor, (int16_t)rule.saved, read, walk);
            frame_step_restore(frame, BASE_R12, anchor, (int16_t)(rule.saved >> 16), read, walk);
            frame_step_restore(frame, BASE_R13, anchor, (int16_t)(rule.saved >> 32), read, walk);
            frame_step_restore(frame, BASE_R14, anchor, (int16_t)(rule.saved >> 48), read, walk);
        }
        frame_step_restore(frame, BASE_R15, anchor, rule_saved_last(rule), read, walk);
    }
#endif
    frame_step_restore(frame, BASE_FP, anchor, rule_saved_fp(rule), read, walk);
    frame->pc = return_address_without_signature(frame->pc);
    frame->base[BASE_SP] = cfa;
    frame->lost &= ~(1u << BASE_SP);
    frame->interrupted = false;
    return STEP_ON;
}

/* RULE_SIGNAL: to the code that the signal interrupted, which may run on another stack. */
FRAME_STEP enum frame_step frame_step_signal(
    struct frame_registers *frame, frame_read *read, struct stack_walk *walk) {
    uint64_t saved = frame->base[BASE_SP];
    if (!read(walk, saved + SIGNAL_SP, &frame->base[BASE_SP]) || !read(walk, saved + SIGNAL_PC, &frame->pc) ||
        !read(walk, saved + SIGNAL_FP, &frame->base[BASE_FP]))
        return STEP_UNREADABLE;
#if defined(__x86_64__)
    if (!read(walk, saved + SIGNAL_RBX, &frame->base[BASE_RBX])) return STEP_UNREADABLE;
    for (unsigned i = 0; i < 4; i++)
        if (!read(walk, saved + SIGNAL_R12 + 8 * i, &frame->base[BASE_R12 + i])) return STEP_UNREADABLE;
#else
    if (!read(walk, saved + SIGNAL_LINK, &frame->link)) return STEP_UNREADABLE;
#endif
    frame->lost = 0;
    frame->interrupted = true;
    return STEP_ON;
}

/* ---- Code without unwind information ---- */

/* RULE_FRAME_POINTER. The frame pointer is believed if it points up the stack and has a return address into code
 * beside it. A frame pointer of 0 marks the outermost frame. */
FRAME_STEP enum frame_step frame_step_frame_pointer(
    struct frame_registers *frame, frame_is_code *is_code, frame_read *read, struct stack_walk *walk) {
    uint64_t fp = frame->base[BASE_FP], next, pc;
    if (frame_step_is_lost(frame, BASE_FP)) return STEP_LOST;
    if (fp == 0) return STEP_START;
    if (fp < frame->base[BASE_SP]) return STEP_LOST;
    if (!read(walk, fp, &next) || !read(walk, fp + 8, &pc)) return STEP_UNREADABLE;
    pc = return_address_without_signature(pc);
    if (!frame_step_is_possible(pc) || !is_code(walk, pc - 1)) return STEP_LOST;
    frame->pc = pc;
    frame->base[BASE_SP] = fp + 16;
    frame->base[BASE_FP] = next;
    frame->lost |= ~(1u << BASE_FP);
#if defined(__x86_64__)
    frame->lost &=
        ~(1u << BASE_SP); /* on aarch64 the caller's stack pointer is only known to be that or more */
#endif
    frame->interrupted = false;
    return STEP_ON;
}

/* RULE_EPILOGUE: code that is about to return. `mapping` is where it is read from, NULL = in this process. */
FRAME_STEP enum frame_step frame_step_epilogue(
    struct frame_registers *frame, const struct mapping *mapping, frame_read *read, struct stack_walk *walk) {
    struct epilogue epilogue;
    if (!epilogue_read(mapping, frame->pc, &epilogue)) return STEP_LOST;
    uint64_t sp = frame->base[BASE_SP], pc;
    if (!read(walk, sp + epilogue.return_place, &pc)) return STEP_UNREADABLE;
    for (unsigned base = BASE_FP; base < BASE_COUNT; base++) { /* their places are below the return address */
        if (!epilogue.place[base]) continue;
        if (!read(walk, sp + epilogue.place[base] - 1, &frame->base[base])) return STEP_UNREADABLE;
        frame->lost &= ~(1u << base);
    }
    frame->pc = pc;
    frame->base[BASE_SP] = sp + epilogue.return_place + 8;
    frame->interrupted = false;
    return STEP_ON;
}

#endif
