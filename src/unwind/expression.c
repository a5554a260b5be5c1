/* Evaluates DWARF expressions of .eh_frame, symbolically: without a frame at hand. The result is a term over one
 * register or the CFA, such as "the word at rbx + 8", from which rule.c makes a rule that serves for every walk. What
 * is no such term fails, and the function's frames are then walked by other means. */
#include "unwind/expression.h"

#include "unwind/rule.h"

#if defined(__x86_64__)
#define REGISTER_PC 16
#else
#define REGISTER_PC      32
#define REGISTER_VECTORS 46 /* the length of scalable vectors (SVE), in words of 8 bytes */
#endif

#define STACK_MAX 6 /* terms */

/* Operations of DWARF expressions, as the standard numbers them. */
enum operation {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_XOR = 0x27,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

struct evaluation {
    struct cursor *cursor;
    uint64_t pc;
    unsigned depth;
    bool failed;
    struct term stack[STACK_MAX];
};

uint8_t expression_base_of_register(uint64_t number) {
#if defined(__x86_64__)
    switch (number) {
    case 3:
        return BASE_RBX;
    case 6:
        return BASE_FP;
    case 7:
        return BASE_SP;
    case 12:
        return BASE_R12;
    case 13:
        return BASE_R13;
    case 14:
        return BASE_R14;
    case 15:
        return BASE_R15;
    }
#else
    switch (number) {
    case 29:
        return BASE_FP;
    case 31:
        return BASE_SP;
    }
#endif
    return BASE_OTHER;
}

static void push(struct evaluation *evaluation, struct term term) {
    if (evaluation->depth == STACK_MAX)
        evaluation->failed = true;
    else
        evaluation->stack[evaluation->depth++] = term;
}

static void push_number(struct evaluation *evaluation, uint64_t number) {
    push(evaluation, (struct term){.kind = TERM_NUMBER, .number = number});
}

static struct term pop(struct evaluation *evaluation) {
    if (evaluation->depth > 0) return evaluation->stack[--evaluation->depth];
    evaluation->failed = true;
    return (struct term){0};
}

#if defined(__aarch64__)
#include <sys/auxv.h>

/* In words of 8 bytes. All threads have the same length, unless one has asked the kernel for another (prctl). */
static uint64_t vector_length(void) {
    enum { HAS_SCALABLE_VECTORS = 1 << 22 };
    if (!(getauxval(AT_HWCAP) & HAS_SCALABLE_VECTORS)) return 0;
    register uint64_t length __asm__("x0");
    __asm__(".inst 0x04e0e3e0" : "=r"(length)); /* cntd x0, which the assembler may not know */
    return length;
}
#endif

static void push_register(struct evaluation *evaluation, uint64_t number, uint64_t offset) {
    uint8_t base = expression_base_of_register(number);
#if defined(__aarch64__)
    if (number == REGISTER_VECTORS) {
        push_number(evaluation, vector_length() + offset);
        return;
    }
#endif
    if (number == REGISTER_PC)
        push_number(evaluation, evaluation->pc + offset);
    else if (base == BASE_OTHER)
        evaluation->failed = true;
    else
        push(evaluation, (struct term){.kind = TERM_BASE, .base = base, .number = offset});
}

static void dereference(struct evaluation *evaluation) {
    struct term term = pop(evaluation);
    if (term.kind != TERM_BASE) evaluation->failed = true;
    term.kind = TERM_WORD;
    push(evaluation, term);
}

/* A number may be added to, or subtracted from, a number, a register or the CFA. All other operations take two
 * numbers. */
static void binary(struct evaluation *evaluation, uint8_t operation) {
    struct term right = pop(evaluation), left = pop(evaluation);
    if (operation == OP_PLUS && left.kind == TERM_NUMBER) {
        struct term swap = left;
        left = right;
        right = swap;
    }
    bool shift_of_anchor = (operation == OP_PLUS || operation == OP_MINUS) && left.kind != TERM_WORD;
    if (right.kind != TERM_NUMBER || (left.kind != TERM_NUMBER && !shift_of_anchor))
        evaluation->failed = true;

    uint64_t a = left.number, b = right.number;
    switch (operation) {
    case OP_AND:
        left.number = a & b;
        break;
    case OP_MINUS:
        left.number = a - b;
        break;
    case OP_MUL:
        left.number = a * b;
        break;
    case OP_OR:
        left.number = a | b;
        break;
    case OP_PLUS:
        left.number = a + b;
        break;
    case OP_SHL:
        left.number = b < 64 ? a << b : 0;
        break;
    case OP_SHR:
        left.number = b < 64 ? a >> b : 0;
        break;
    case OP_XOR:
        left.number = a ^ b;
        break;
    case OP_EQ:
        left.number = a == b;
        break;
    case OP_GE:
        left.number = (int64_t)a >= (int64_t)b;
        break;
    case OP_GT:
        left.number = (int64_t)a > (int64_t)b;
        break;
    case OP_LE:
        left.number = (int64_t)a <= (int64_t)b;
        break;
    case OP_LT:
        left.number = (int64_t)a < (int64_t)b;
        break;
    case OP_NE:
        left.number = a != b;
        break;
    default:
        evaluation->failed = true;
    }
    push(evaluation, left);
}

static void evaluate_operation(struct evaluation *evaluation, uint8_t operation) {
    struct cursor *cursor = evaluation->cursor;
    if (operation >= OP_LIT0 && operation <= OP_LIT31) {
        push_number(evaluation, operation - OP_LIT0);
        return;
    }
    if (operation >= OP_BREG0 && operation <= OP_BREG31) {
        push_register(evaluation, operation - OP_BREG0, (uint64_t)cursor_signed(cursor));
        return;
    }
    switch (operation) {
    case OP_DEREF:
        dereference(evaluation);
        break;
    case OP_CONST1U:
        push_number(evaluation, cursor_byte(cursor));
        break;
    case OP_CONST1S:
        push_number(evaluation, (uint64_t)(int64_t)(int8_t)cursor_byte(cursor));
        break;
    case OP_CONST2U:
        push_number(evaluation, cursor_fixed(cursor, 2));
        break;
    case OP_CONST2S:
        push_number(evaluation, (uint64_t)(int64_t)(int16_t)cursor_fixed(cursor, 2));
        break;
    case OP_CONST4U:
        push_number(evaluation, cursor_fixed(cursor, 4));
        break;
    case OP_CONST4S:
        push_number(evaluation, (uint64_t)(int64_t)(int32_t)cursor_fixed(cursor, 4));
        break;
    case OP_CONST8U:
    case OP_CONST8S:
        push_number(evaluation, cursor_fixed(cursor, 8));
        break;
    case OP_CONSTU:
        push_number(evaluation, cursor_unsigned(cursor));
        break;
    case OP_CONSTS:
        push_number(evaluation, (uint64_t)cursor_signed(cursor));
        break;
    case OP_DUP: {
        struct term top = pop(evaluation);
        push(evaluation, top);
        push(evaluation, top);
        break;
    }
    case OP_DROP:
        pop(evaluation);
        break;
    case OP_PLUS_UCONST:
        push_number(evaluation, cursor_unsigned(cursor));
        binary(evaluation, OP_PLUS);
        break;
    case OP_BREGX: {
        uint64_t number = cursor_unsigned(cursor);
        push_register(evaluation, number, (uint64_t)cursor_signed(cursor));
        break;
    }
    case OP_NOP:
        break;
    default:
        binary(evaluation, operation);
    }
}

bool expression_evaluate(
    struct cursor *cursor, uint64_t size, uint64_t pc, bool on_cfa, struct term *ret_term) {
    uint64_t outer_end = cursor->end;
    if (cursor->failed || size > outer_end - cursor->address) {
        cursor->failed = true;
        return false;
    }
    uint64_t end = cursor->address + size;
    cursor->end = end;
    struct evaluation evaluation = {.cursor = cursor, .pc = pc};
    if (on_cfa) push(&evaluation, (struct term){.kind = TERM_CFA});
    while (cursor->address < end && !evaluation.failed && !cursor->failed)
        evaluate_operation(&evaluation, cursor_byte(cursor));
    cursor->end = outer_end;
    if (cursor->failed) return false;
    cursor->address = end;
    if (evaluation.failed || evaluation.depth == 0) return false;
    *ret_term = evaluation.stack[evaluation.depth - 1];
    return true;
}
