/* DWARF expressions: each operation gives what the standard says of it, and what cannot be told without the
 * registers, or makes no sense, is refused. */
#include "check.h"
#include "unwind/expression.h"
#include "unwind/rule.h"

#include <stdint.h>

#define PC UINT64_C(0x401000)

#define SP(offset)                                                                                           \
    (struct term) {                                                                                          \
        .kind = TERM_BASE, .base = BASE_SP, .number = (uint64_t)(offset)                                     \
    }
#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

#if defined(__x86_64__)
#define REGISTER_SP 7
#define REGISTER_PC 16
#else
#define REGISTER_SP 31
#define REGISTER_PC 32
#endif
#define SP_PLUS 0x70 + REGISTER_SP /* DW_OP_breg of the stack pointer */

static bool evaluate(const uint8_t *bytes, size_t size, bool on_cfa, struct term *ret_term) {
    struct mapping module = {
        .data_low = (uintptr_t)bytes, .data_high = (uintptr_t)bytes + size, .permanent = 1};
    uint8_t window[32];
    struct cursor cursor;
    cursor_begin(&cursor, &module, (uintptr_t)bytes, window, sizeof window);
    bool fine = expression_evaluate(&cursor, size, PC, on_cfa, ret_term);
    CHECK(cursor.failed || cursor.address == (uintptr_t)bytes + size);
    return fine;
}

static void gives(const uint8_t *bytes, size_t size, struct term expected) {
    struct term found = {.kind = 99};
    if (!CHECK(evaluate(bytes, size, false, &found) && found.kind == expected.kind &&
               found.base == expected.base && found.number == expected.number))
        fprintf(stderr, "operation %#x: kind %u, base %u, number %#llx, not %#llx\n", bytes[size - 1],
            found.kind, found.base, (unsigned long long)found.number, (unsigned long long)expected.number);
}

static void is_refused(const uint8_t *bytes, size_t size) {
    struct term untouched = {.kind = 99, .number = 5};
    CHECK(!evaluate(bytes, size, false, &untouched) && untouched.kind == 99 && untouched.number == 5);
}

static struct term number(uint64_t value) {
    return (struct term){.kind = TERM_NUMBER, .number = value};
}

static void constants_of_every_form(void) {
    gives(BYTES(0x30), number(0));
    gives(BYTES(0x4f), number(31));
    gives(BYTES(0x08, 0xfe), number(254));
    gives(BYTES(0x09, 0xfe), number((uint64_t)-2));
    gives(BYTES(0x0a, 0xfe, 0xff), number(0xfffe));
    gives(BYTES(0x0b, 0xfe, 0xff), number((uint64_t)-2));
    gives(BYTES(0x0c, 0xfe, 0xff, 0xff, 0xff), number(0xfffffffe));
    gives(BYTES(0x0d, 0xfe, 0xff, 0xff, 0xff), number((uint64_t)-2));
    gives(BYTES(0x0e, 1, 2, 3, 4, 5, 6, 7, 8), number(UINT64_C(0x0807060504030201)));
    gives(BYTES(0x0f, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), number((uint64_t)-2));
    gives(BYTES(0x10, 0x80, 0x01), number(128));
    gives(BYTES(0x11, 0x80, 0x7f), number((uint64_t)-128));
}

/* Operations on 7 and 3, and on numbers of which one is negative. */
static void arithmetic(void) {
    gives(BYTES(0x37, 0x33, 0x1a), number(3));
    gives(BYTES(0x37, 0x33, 0x1c), number(4));
    gives(BYTES(0x33, 0x37, 0x1c), number((uint64_t)-4));
    gives(BYTES(0x37, 0x33, 0x1e), number(21));
    gives(BYTES(0x34, 0x33, 0x21), number(7));
    gives(BYTES(0x37, 0x33, 0x22), number(10));
    gives(BYTES(0x37, 0x23, 0x80, 0x01), number(135));
    gives(BYTES(0x37, 0x33, 0x24), number(56));
    gives(BYTES(0x37, 0x31, 0x25), number(3));
    gives(BYTES(0x37, 0x33, 0x27), number(4));
    /* A shift by 64 gives 0. The processor's own shift would be by 64 % 64 = 0. */
    gives(BYTES(0x37, 0x08, 64, 0x24), number(0));
    gives(BYTES(0x37, 0x08, 64, 0x25), number(0));
}

static void comparisons_are_of_signed_numbers(void) {
    static const struct {
        uint8_t operation;
        bool less, equal, greater;
    } all[] = {{0x29, false, true, false}, {0x2a, false, true, true}, {0x2b, false, false, true},
        {0x2c, true, true, false}, {0x2d, true, false, false}, {0x2e, true, false, true}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        gives(BYTES(0x09, 0xff, 0x31, all[i].operation), number(all[i].less));
        gives(BYTES(0x09, 0xff, 0x09, 0xff, all[i].operation), number(all[i].equal));
        gives(BYTES(0x31, 0x09, 0xff, all[i].operation), number(all[i].greater));
    }
}

static void what_lies_on_the_stack(void) {
    gives(BYTES(0x35, 0x12, 0x22), number(10)); /* twice the same */
    gives(BYTES(0x35, 0x36, 0x13), number(5));  /* without the last */
    gives(BYTES(0x35, 0x96), number(5));        /* nothing is done */
    gives(BYTES(0x30, 0x31, 0x32, 0x33, 0x34, 0x35), number(5));
    is_refused(BYTES(0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36)); /* more than there is room for */
    is_refused(BYTES(0x13));
    is_refused(BYTES(0x31, 0x22));
    is_refused(BYTES(0x31, 0x13)); /* nothing is left */
    is_refused(BYTES(0x96));
}

static void registers_and_the_words_they_lead_to(void) {
    gives(BYTES(SP_PLUS, 16), SP(16));
    gives(BYTES(SP_PLUS, 0x78), SP(-8));
    gives(BYTES(0x92, REGISTER_SP, 24), SP(24));
    gives(BYTES(SP_PLUS, 16, 0x23, 8), SP(24));
    gives(BYTES(SP_PLUS, 16, 0x38, 0x1c), SP(8));
    gives(BYTES(0x38, SP_PLUS, 16, 0x22), SP(24)); /* the other way round */
    gives(BYTES(0x92, REGISTER_PC, 4), number(PC + 4));
    struct term word = SP(16);
    word.kind = TERM_WORD;
    gives(BYTES(SP_PLUS, 16, 0x06), word);
    is_refused(BYTES(SP_PLUS, 16, 0x06, 0x31, 0x22)); /* what the word is, is not known */
    is_refused(BYTES(SP_PLUS, 16, 0x06, 0x06));
    is_refused(BYTES(0x35, 0x06));
    is_refused(BYTES(0x38, SP_PLUS, 16, 0x1c)); /* a number less a register */
    is_refused(BYTES(SP_PLUS, 16, SP_PLUS, 8, 0x22));
    is_refused(BYTES(SP_PLUS, 16, 0x38, 0x1a));
    is_refused(BYTES(0x70 + 0, 16)); /* a register that is not followed */
}

static void the_frame_address_is_there_at_the_start(void) {
    struct term found = {0};
    CHECK(evaluate(BYTES(0x23, 8), true, &found));
    CHECK(found.kind == TERM_CFA && found.number == 8);
}

static void what_is_cut_or_unknown(void) {
    is_refused(BYTES(0x0e, 1, 2, 3)); /* the number goes on behind the end */
    is_refused(BYTES(0x10, 0x80));
    is_refused(BYTES(0x31, 0x32, 0x28, 0, 0)); /* a branch, which nobody emits here */
    is_refused(BYTES(0x31, 0x32, 0xff));
    struct term untouched = {.kind = 99};
    uint8_t window[8], bytes[] = {0x31};
    struct mapping module = {
        .data_low = (uintptr_t)bytes, .data_high = (uintptr_t)bytes + sizeof bytes, .permanent = 1};
    struct cursor cursor;
    cursor_begin(&cursor, &module, (uintptr_t)bytes, window, sizeof window);
    CHECK(!expression_evaluate(&cursor, 2, PC, false, &untouched) && cursor.failed && untouched.kind == 99);
}

int main(void) {
    constants_of_every_form();
    arithmetic();
    comparisons_are_of_signed_numbers();
    what_lies_on_the_stack();
    registers_and_the_words_they_lead_to();
    the_frame_address_is_there_at_the_start();
    what_is_cut_or_unknown();
    return check_result();
}
