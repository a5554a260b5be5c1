/* DWARF expressions, evaluated once for a pc without knowing the registers: the result is a register plus a
 * number, or the word in memory at such an address. That is enough for what compilers and linkers emit: the
 * procedure linkage table's frames, realigned stacks and the signal frame. */
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

#define BASE_OTHER 255 /* a register that the walk does not follow */

/* enum rule_base or BASE_OTHER, of a DWARF register number. */
uint8_t expression_base_of_register(uint64_t number);

/* Evaluates the `size` bytes at the cursor, for the instruction at `pc`. With `on_cfa` the frame address is
 * on the stack at the start. The cursor ends up after the expression in any case. */
bool expression_evaluate(
    struct cursor *cursor, uint64_t size, uint64_t pc, bool on_cfa, struct term *ret_term);

#endif
