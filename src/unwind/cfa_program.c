#include "unwind/cfa_program.h"

#include "unwind/expression.h"

/* Rows that DW_CFA_remember_state may put aside at a time. Compilers use one. */
#define REMEMBERED_MAX 2

struct machine {
    struct cursor *cursor;
    const struct cfa_program *program;
    struct row *row;
    uint64_t location;
    unsigned remembered;
    bool failed;
    struct row memory[REMEMBERED_MAX];
};

/* enum row_register of a DWARF register number; ROW_REGISTERS if the register is not followed. */
static unsigned row_register(uint64_t number) {
#if defined(__x86_64__)
    switch (number) {
    case 3:
        return ROW_RBX;
    case 6:
        return ROW_FP;
    case 7:
        return ROW_SP;
    case 12:
        return ROW_R12;
    case 13:
        return ROW_R13;
    case 14:
        return ROW_R14;
    case 15:
        return ROW_R15;
    case 16:
        return ROW_RETURN;
    }
#else
    switch (number) {
    case 29:
        return ROW_FP;
    case 30:
        return ROW_RETURN;
    case 31:
        return ROW_SP;
    }
#endif
    return ROW_REGISTERS;
}

static void place_set(struct machine *machine, uint64_t number, unsigned place, int64_t offset) {
    unsigned index = row_register(number);
    if (index == ROW_REGISTERS) return;
    if (offset != (int32_t)offset) place = PLACE_LOST;
    machine->row->place[index] = (uint8_t)place;
    machine->row->offset[index] = (int32_t)offset;
}

static void place_restore(struct machine *machine, uint64_t number) {
    unsigned index = row_register(number);
    if (index == ROW_REGISTERS) return;
    const struct row *initial = machine->program->initial;
    machine->row->place[index] = initial ? initial->place[index] : PLACE_SAME;
    machine->row->offset[index] = initial ? initial->offset[index] : 0;
}

static int64_t factored(struct machine *machine, uint64_t value) {
    return (int64_t)(value * (uint64_t)machine->program->data_alignment);
}

static void cfa_set(struct machine *machine, uint64_t number, int64_t offset) {
    struct row *row = machine->row;
    row->cfa_base = expression_base_of_register(number);
    row->cfa = row->cfa_base == BASE_OTHER || offset != (int32_t)offset ? CFA_UNKNOWN : CFA_REGISTER;
    row->cfa_offset = (int32_t)offset;
}

static void cfa_set_offset(struct machine *machine, int64_t offset) {
    if (offset != (int32_t)offset) machine->row->cfa = CFA_UNKNOWN;
    machine->row->cfa_offset = (int32_t)offset;
}

static void cfa_set_expression(struct machine *machine) {
    struct row *row = machine->row;
    struct term term;
    uint64_t size = cursor_unsigned(machine->cursor);
    row->cfa = CFA_UNKNOWN;
    if (!expression_evaluate(machine->cursor, size, machine->program->pc, false, &term)) return;
    int64_t offset = (int64_t)term.number;
    if (offset != (int32_t)offset || (term.kind != TERM_BASE && term.kind != TERM_WORD)) return;
    row->cfa = term.kind == TERM_BASE ? CFA_REGISTER : CFA_WORD;
    row->cfa_base = term.base;
    row->cfa_offset = (int32_t)offset;
}

static void place_set_expression(struct machine *machine) {
    struct term term;
    uint64_t number = cursor_unsigned(machine->cursor), size = cursor_unsigned(machine->cursor);
    if (!expression_evaluate(machine->cursor, size, machine->program->pc, true, &term))
        place_set(machine, number, PLACE_LOST, 0);
    else if (term.kind == TERM_BASE)
        place_set(machine, number, PLACE_BASE + 8u * term.base, (int64_t)term.number);
    else
        place_set(machine, number, term.kind == TERM_CFA ? PLACE_CFA : PLACE_LOST, (int64_t)term.number);
}

static void advance(struct machine *machine, uint64_t delta) {
    machine->location += delta * machine->program->code_alignment;
}

static void remember(struct machine *machine) {
    if (machine->remembered == REMEMBERED_MAX)
        machine->failed = true;
    else
        machine->memory[machine->remembered++] = *machine->row;
}

static void recall(struct machine *machine) {
    if (machine->remembered == 0)
        machine->failed = true;
    else
        *machine->row = machine->memory[--machine->remembered];
}

static void execute_extended(struct machine *machine, uint8_t instruction) {
    struct cursor *cursor = machine->cursor;
    uint64_t number;
    switch (instruction) {
    case 0x00:
        break; /* nop */
    case 0x01:
        machine->location = cursor_pointer(cursor, machine->program->pointer_encoding);
        break;
    case 0x02:
        advance(machine, cursor_byte(cursor));
        break;
    case 0x03:
        advance(machine, cursor_fixed(cursor, 2));
        break;
    case 0x04:
        advance(machine, cursor_fixed(cursor, 4));
        break;
    case 0x05: /* offset_extended */
        number = cursor_unsigned(cursor);
        place_set(machine, number, PLACE_CFA, factored(machine, cursor_unsigned(cursor)));
        break;
    case 0x06:
        place_restore(machine, cursor_unsigned(cursor));
        break;
    case 0x07:
        place_set(machine, cursor_unsigned(cursor), PLACE_UNDEFINED, 0);
        break;
    case 0x08:
        place_set(machine, cursor_unsigned(cursor), PLACE_SAME, 0);
        break;
    case 0x09: /* register: the value is in another register */
        number = cursor_unsigned(cursor);
        cursor_unsigned(cursor);
        place_set(machine, number, PLACE_LOST, 0);
        break;
    case 0x0a:
        remember(machine);
        break;
    case 0x0b:
        recall(machine);
        break;
    case 0x0c: /* def_cfa */
        number = cursor_unsigned(cursor);
        cfa_set(machine, number, (int64_t)cursor_unsigned(cursor));
        break;
    case 0x0d:
        cfa_set(machine, cursor_unsigned(cursor), machine->row->cfa_offset);
        break;
    case 0x0e:
        cfa_set_offset(machine, (int64_t)cursor_unsigned(cursor));
        break;
    case 0x0f:
        cfa_set_expression(machine);
        break;
    case 0x10:
        place_set_expression(machine);
        break;
    case 0x11: /* offset_extended_sf */
        number = cursor_unsigned(cursor);
        place_set(machine, number, PLACE_CFA, factored(machine, (uint64_t)cursor_signed(cursor)));
        break;
    case 0x12: /* def_cfa_sf */
        number = cursor_unsigned(cursor);
        cfa_set(machine, number, factored(machine, (uint64_t)cursor_signed(cursor)));
        break;
    case 0x13:
        cfa_set_offset(machine, factored(machine, (uint64_t)cursor_signed(cursor)));
        break;
    case 0x14: /* val_offset */
    case 0x15: /* val_offset_sf */
        number = cursor_unsigned(cursor);
        /* "The stack pointer is the CFA" holds in every row, and changes nothing. */
        if (cursor_signed(cursor) != 0 || row_register(number) != ROW_SP)
            place_set(machine, number, PLACE_LOST, 0);
        break;
    case 0x16: /* val_expression */
        number = cursor_unsigned(cursor);
        cursor_skip(cursor, cursor_unsigned(cursor));
        place_set(machine, number, PLACE_LOST, 0);
        break;
    case 0x2c:
    case 0x2d:
        break; /* aarch64: from here on the return address is signed, or no longer is: the stack walk strips it */
    case 0x2e:
        cursor_unsigned(cursor);
        break; /* size of the arguments */
    case 0x2f: /* negative_offset_extended */
        number = cursor_unsigned(cursor);
        place_set(machine, number, PLACE_CFA, -factored(machine, cursor_unsigned(cursor)));
        break;
    default:
        machine->failed = true;
    }
}

bool cfa_program_run(struct cursor *cursor, const struct cfa_program *program, struct row *row) {
    struct machine machine = {.cursor = cursor, .program = program, .row = row, .location = program->begin};
    while (cursor->address < cursor->end && machine.location <= program->pc) {
        uint8_t instruction = cursor_byte(cursor), operand = instruction & 0x3f;
        switch (instruction & 0xc0) {
        case 0x40:
            advance(&machine, operand);
            break;
        case 0x80:
            place_set(&machine, operand, PLACE_CFA, factored(&machine, cursor_unsigned(cursor)));
            break;
        case 0xc0:
            place_restore(&machine, operand);
            break;
        default:
            execute_extended(&machine, instruction);
        }
        if (machine.failed || cursor->failed) return false;
    }
    return true;
}
