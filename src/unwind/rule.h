/* How to get from a frame to its caller's, for one pc: two words, as they are kept in the cache.
 *
 *     cfa     0..3  kind     4..7  base register    8..31 offset, signed, in bytes
 *                                                     and on x86-64:  32..47 where the frame pointer is saved
 *                                                                     48..63 where r15 is
 *     saved   x86-64   0..15 rbx   16..31 r12   32..47 r13   48..63 r14
 *             aarch64  0..31 where the return address is saved   32..63 where the frame pointer is
 *
 * A place of saving is signed and counts 8 bytes from the anchor: 0 = the register is unchanged, RULE_LOST =
 * its value cannot be told. The anchor is the canonical frame address (CFA: the stack pointer before the
 * call), but for RULE_REALIGNED 8 above the base register. On x86-64 the return address lies right below the
 * CFA; on aarch64 it is saved below a function's variables, which may be large. */
#ifndef MALLOSCOPE_UNWIND_RULE_H
#define MALLOSCOPE_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/mapping.h"

enum rule_kind {
    RULE_OUTSIDE,   /* no executable memory: this is not a return address */
    RULE_UNKNOWN,   /* there is a rule, but not one that can be followed */
    RULE_CALL,      /* CFA = base + offset */
    RULE_REALIGNED, /* CFA = the word at base + offset, of a function that realigned its stack */
    RULE_SIGNAL,    /* the kernel's signal frame lies at the stack pointer */
    RULE_START,     /* the outermost frame; with offset 1: it begins a function, see rule_begins_function */
    RULE_FRAME_POINTER, /* no unwind information: see whether the frame pointer leads on */
    RULE_EPILOGUE,      /* nor here, but the code was about to return: see whether it still is */
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

/* r15, or on aarch64 the return address. */
static inline int64_t rule_saved_last(struct rule rule) {
#if defined(__x86_64__)
    return (rule_place)(rule.cfa >> 48);
#else
    return (rule_place)rule.saved;
#endif
}

/* Nothing was called here: the return address was put on the stack by hand, and is a function's first
 * instruction. The kernel does so with the signal trampoline, and makecontext. */
static inline bool rule_begins_function(struct rule rule) {
    return rule_kind(rule) == RULE_SIGNAL || (rule_kind(rule) == RULE_START && rule_offset(rule) == 1);
}

/* Evaluates the rule for the instruction at `pc`, an address within `mapping`. False if the mapping is not what
 * it was taken for. */
bool rule_evaluate(const struct mapping *mapping, uint64_t pc, struct rule *ret_rule);

/* The code that the entry (FDE) at `address` is about. False if it is none. */
bool rule_extent(const struct mapping *mapping, uint64_t address, uint64_t *ret_begin, uint64_t *ret_size);

#endif
