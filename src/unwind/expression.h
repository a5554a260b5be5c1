/* DWARF expressions, evaluated once for a pc, without the values of registers. The result is a register plus a
 * number, or the word in memory at such an address. That is enough for what compilers and linkers emit: frames of
 * the procedure linkage table, realigned stacks and the signal frame. */
#ifndef MALLOSCOPE_UNWIND_EXPRESSION_H
#define MALLOSCOPE_UNWIND_EXPRESSION_H

#include "unwind/cursor.h"

enum term_kind {
    TERM_NUMBER,
    TERM_BASE, /* register `base` (enum rule_base) plus number */
    TERM_WORD, /* the word at that address */
    TERM_CFA,  /* the canonical frame address plus number */
};

struct term {
    uint8_t kind, base;
    uint64_t number;
};

#define BASE_OTHER 255 /* a register that a stack walk does not follow */

/* enum rule_base of a DWARF register number, or BASE_OTHER. */
uint8_t expression_base_of_register(uint64_t number);

/* Evaluates the expression of `size` bytes at the cursor, for the instruction at `pc`. With `on_cfa` its stack
 * begins with the canonical frame address. False if the result cannot be expressed as a term. Unless the cursor
 * fails, it ends up behind the expression. */
bool expression_evaluate(
    struct cursor *cursor, uint64_t size, uint64_t pc, bool on_cfa, struct term *ret_term);

#endif
