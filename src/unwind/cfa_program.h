/* The call frame instructions of .eh_frame, run up to one pc. */
#ifndef MALLOSCOPE_UNWIND_CFA_PROGRAM_H
#define MALLOSCOPE_UNWIND_CFA_PROGRAM_H

#include "unwind/cursor.h"
#include "unwind/rule.h"

/* The registers whose places of saving are followed. */
enum row_register { ROW_FP, ROW_RBX, ROW_R12, ROW_R13, ROW_R14, ROW_R15, ROW_RETURN, ROW_SP, ROW_REGISTERS };

enum row_place {
    PLACE_SAME, /* unchanged */
    PLACE_CFA,  /* saved at CFA + offset */
    PLACE_BASE, /* saved at a register plus offset; which one is in the upper bits: PLACE_BASE + 8 * base */
    PLACE_LOST, /* saved in some way that is not followed */
    PLACE_UNDEFINED, /* said to have no value: for the return address, the outermost frame */
};

enum row_cfa { CFA_UNKNOWN, CFA_REGISTER, CFA_WORD };

/* What holds for one pc. */
struct row {
    uint8_t cfa, cfa_base; /* enum row_cfa, enum rule_base */
    uint8_t place[ROW_REGISTERS];
    int32_t cfa_offset;
    int32_t offset[ROW_REGISTERS];
};

struct cfa_program {
    uint64_t pc;    /* stop before the first instruction that concerns what comes after */
    uint64_t begin; /* where the function starts */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint8_t pointer_encoding;
    const struct row *initial; /* what `restore` restores; NULL while the common part runs */
};

/* Applies the instructions from the cursor to its end. False if they make no sense. */
bool cfa_program_run(struct cursor *cursor, const struct cfa_program *program, struct row *row);

#endif
