#include "unwind/expression.h"

#include "unwind/rule.h"

#if defined(__x86_64__)
#define REGISTER_PC 16
#else
#define REGISTER_PC      32
#define REGISTER_VECTORS 46 /* the length of scalable vectors (SVE), in words of 8 bytes */
#endif

#define STACK_MAX 6

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
    if (operation == 0x22 && left.kind == TERM_NUMBER) {
        struct term swap = left;
        left = right;
        right = swap;
    }
    bool shift_of_anchor = (operation == 0x22 || operation == 0x1c) && left.kind != TERM_WORD;
    if (right.kind != TERM_NUMBER || (left.kind != TERM_NUMBER && !shift_of_anchor))
        evaluation->failed = true;

    uint64_t a = left.number, b = right.number;
    switch (operation) {
    case 0x1a:
        left.number = a & b;
        break;
    case 0x1c:
        left.number = a - b;
        break;
    case 0x1e:
        left.number = a * b;
        break;
    case 0x21:
        left.number = a | b;
        break;
    case 0x22:
        left.number = a + b;
        break;
    case 0x24:
        left.number = b < 64 ? a << b : 0;
        break;
    case 0x25:
        left.number = b < 64 ? a >> b : 0;
        break;
    case 0x27:
        left.number = a ^ b;
        break;
    case 0x29:
        left.number = a == b;
        break;
    case 0x2a:
        left.number = (int64_t)a >= (int64_t)b;
        break;
    case 0x2b:
        left.number = (int64_t)a > (int64_t)b;
        break;
    case 0x2c:
        left.number = (int64_t)a <= (int64_t)b;
        break;
    case 0x2d:
        left.number = (int64_t)a < (int64_t)b;
        break;
    case 0x2e:
        left.number = a != b;
        break;
    default:
        evaluation->failed = true;
    }
    push(evaluation, left);
}

static void evaluate_operation(struct evaluation *evaluation, uint8_t operation) {
    struct cursor *cursor = evaluation->cursor;
    if (operation >= 0x30 && operation <= 0x4f) {
        push_number(evaluation, operation - 0x30);
        return;
    }
    if (operation >= 0x70 && operation <= 0x8f) {
        push_register(evaluation, operation - 0x70, (uint64_t)cursor_signed(cursor));
        return;
    }
    switch (operation) {
    case 0x06:
        dereference(evaluation);
        break;
    case 0x08:
        push_number(evaluation, cursor_byte(cursor));
        break;
    case 0x09:
        push_number(evaluation, (uint64_t)(int64_t)(int8_t)cursor_byte(cursor));
        break;
    case 0x0a:
        push_number(evaluation, cursor_fixed(cursor, 2));
        break;
    case 0x0b:
        push_number(evaluation, (uint64_t)(int64_t)(int16_t)cursor_fixed(cursor, 2));
        break;
    case 0x0c:
        push_number(evaluation, cursor_fixed(cursor, 4));
        break;
    case 0x0d:
        push_number(evaluation, (uint64_t)(int64_t)(int32_t)cursor_fixed(cursor, 4));
        break;
    case 0x0e:
    case 0x0f:
        push_number(evaluation, cursor_fixed(cursor, 8));
        break;
    case 0x10:
        push_number(evaluation, cursor_unsigned(cursor));
        break;
    case 0x11:
        push_number(evaluation, (uint64_t)cursor_signed(cursor));
        break;
    case 0x12: {
        struct term top = pop(evaluation);
        push(evaluation, top);
        push(evaluation, top);
        break;
    }
    case 0x13:
        pop(evaluation);
        break;
    case 0x23:
        push_number(evaluation, cursor_unsigned(cursor));
        binary(evaluation, 0x22);
        break;
    case 0x92: {
        uint64_t number = cursor_unsigned(cursor);
        push_register(evaluation, number, (uint64_t)cursor_signed(cursor));
        break;
    }
    case 0x96:
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
