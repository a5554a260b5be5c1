/* Runs the call frame instructions of .eh_frame (DWARF call frame information) up to one pc. */
#ifndef MALLOSCOPE_UNWIND_CFA_PROGRAM_H
#define MALLOSCOPE_UNWIND_CFA_PROGRAM_H

#include "unwind/cursor.h"
#include "unwind/rule.h"

/* The registers of which it is followed where a function saves them. */
enum row_register { ROW_FP, ROW_RBX, ROW_R12, ROW_R13, ROW_R14, ROW_R15, ROW_RETURN, ROW_SP, ROW_REGISTERS };

enum row_place {
    PLACE_SAME,      /* the function has not changed the register */
    PLACE_CFA,       /* saved at CFA + offset */
    PLACE_BASE,      /* saved at a base register + offset; stored as PLACE_BASE + 8 * base */
    PLACE_LOST,      /* saved in a way that is not followed */
    PLACE_UNDEFINED, /* has no value; if it is the return address, this is the outermost frame */
};

/* How the canonical frame address is found: CFA_REGISTER = base + offset, CFA_WORD = the word at base + offset. */
enum row_cfa { CFA_UNKNOWN, CFA_REGISTER, CFA_WORD };

/* A row of the table that the instructions describe: what holds at one pc. */
struct row {
    uint8_t cfa, cfa_base; /* enum row_cfa, enum rule_base */
    uint8_t place[ROW_REGISTERS];
    int32_t cfa_offset;
    int32_t offset[ROW_REGISTERS];
};

struct cfa_program {
    uint64_t pc;    /* run up to here: stop before the first instruction that is about a later address */
    uint64_t begin; /* of the function */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint8_t pointer_encoding;
    const struct row
        *initial; /* the row after the CIE's instructions, for DW_CFA_restore; NULL while these run */
};

/* Applies the instructions from the cursor to its end to `row`. False if they make no sense. */
bool cfa_program_run(struct cursor *cursor, const struct cfa_program *program, struct row *row);

#endif
