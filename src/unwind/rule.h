/* The rule of a pc: how to get from a frame to its caller's. Two words, as they are kept in the rule cache.
 *
 *     cfa     0..3  kind     4..7  base register    8..31 offset, signed, in bytes
 *                                                     and on x86-64:  32..47 where the frame pointer is saved
 *                                                                     48..63 where r15 is
 *     saved   x86-64   0..15 rbx   16..31 r12   32..47 r13   48..63 r14
 *             aarch64  0..31 where the return address is saved   32..63 where the frame pointer is
 *
 * "Where a register is saved" is a signed number of words of 8 bytes from the anchor: 0 = the function has not
 * changed the register, RULE_LOST = its value cannot be found. The anchor is the canonical frame address (CFA),
 * which is the stack pointer before the call; for RULE_REALIGNED it is the base register + 8.
 *
 * On x86-64 the return address lies right below the CFA. On aarch64 the function saves it below its variables,
 * which may be large: places need 32 bits there. */
#ifndef MALLOSCOPE_UNWIND_RULE_H
#define MALLOSCOPE_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/mapping.h"

enum rule_kind {
    RULE_OUTSIDE,       /* no executable memory: this is not a return address */
    RULE_UNKNOWN,       /* there is unwind information, but it cannot be expressed as a rule */
    RULE_CALL,          /* CFA = base + offset */
    RULE_REALIGNED,     /* CFA = the word at base + offset, in a function that realigned its stack */
    RULE_SIGNAL,        /* the kernel's signal frame lies at the stack pointer */
    RULE_START,         /* the outermost frame; offset 1 = see rule_begins_function */
    RULE_FRAME_POINTER, /* no unwind information: the frame pointer may lead on */
    RULE_EPILOGUE,      /* no unwind information, and the code is about to return (epilogue.h) */
};

enum rule_base { BASE_SP, BASE_FP, BASE_RBX, BASE_R12, BASE_R13, BASE_R14, BASE_R15, BASE_COUNT };

#if defined(__x86_64__)
typedef int16_t rule_place;
#define RULE_LOST INT16_MIN
#else
typedef int32_t rule_place;
#define RULE_LOST INT32_MIN
#endif

struct rule {
    uint64_t cfa, saved;
};

static inline enum rule_kind rule_kind(struct rule rule) {
    return (enum rule_kind)(rule.cfa & 15);
}

static inline unsigned rule_base(struct rule rule) {
    return rule.cfa >> 4 & 15;
}

static inline int64_t rule_offset(struct rule rule) {
    return (int32_t)(uint32_t)rule.cfa >> 8;
}

static inline int64_t rule_saved_fp(struct rule rule) {
#if defined(__x86_64__)
    return (rule_place)(rule.cfa >> 32);
#else
    return (rule_place)(rule.saved >> 32);
#endif
}

/* Where r15 is saved; on aarch64 the return address. */
static inline int64_t rule_saved_last(struct rule rule) {
#if defined(__x86_64__)
    return (rule_place)(rule.cfa >> 48);
#else
    return (rule_place)rule.saved;
#endif
}

/* Whether the return address is the first instruction of a function. No call leaves such a return address: it was
 * written to the stack, by the kernel (the signal trampoline) or by makecontext. */
static inline bool rule_begins_function(struct rule rule) {
    return rule_kind(rule) == RULE_SIGNAL || (rule_kind(rule) == RULE_START && rule_offset(rule) == 1);
}

/* Evaluates the rule of the instruction at `pc`, an address within `mapping`. False if the content of the mapping
 * is not what it was taken for: another file is mapped there, or it cannot be read. */
bool rule_evaluate(const struct mapping *mapping, uint64_t pc, struct rule *ret_rule);

/* The range of code that the FDE at `address` is about. False if there is no FDE. */
bool rule_extent(const struct mapping *mapping, uint64_t address, uint64_t *ret_begin, uint64_t *ret_size);

#endif
