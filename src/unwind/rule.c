#include "unwind/rule.h"

#include <string.h>

#include "unwind/cfa_program.h"
#include "unwind/cursor.h"
#include "unwind/epilogue.h"
#include "unwind/expression.h"
#include "unwind/fde.h"
#include "unwind/signal_frame.h"

#if defined(__x86_64__)
#define RETURN_REGISTER 16
#else
#define RETURN_REGISTER 30
#endif

/* No function needs as much. The limit keeps damaged unwind information from taking long. */
#define ENTRY_SIZE_MAX (1u << 20)

/* A common information entry (CIE): what many FDEs share. */
struct common {
    uint64_t code_alignment;
    int64_t data_alignment;
    uint8_t pointer_encoding;
    bool augmented, signal;
};

/* Parses a CIE. Leaves the cursor at its initial instructions, and the cursor's end at their end. */
static bool common_parse(struct cursor *cursor, struct common *ret_common) {
    struct common common = {0};
    uint64_t length = cursor_fixed(cursor, 4), letters;
    if (length == 0 || length > ENTRY_SIZE_MAX || length > cursor->end - cursor->address) return false;
    cursor->end = cursor->address + length;
    if (cursor_fixed(cursor, 4) != 0) return false;
    uint8_t version = cursor_byte(cursor), letter;
    if (version != 1 && version != 3) return false;

    char augmentation[8] = {0};
    for (letters = 0; (letter = cursor_byte(cursor)) != 0; letters++) {
        if (letters == sizeof augmentation - 1) return false;
        augmentation[letters] = (char)letter;
    }
    common.code_alignment = cursor_unsigned(cursor);
    common.data_alignment = cursor_signed(cursor);
    if ((version == 1 ? cursor_byte(cursor) : cursor_unsigned(cursor)) != RETURN_REGISTER) return false;

    common.augmented = augmentation[0] == 'z';
    if (!common.augmented && augmentation[0] != 0) return false;
    if (common.augmented) {
        uint64_t size = cursor_unsigned(cursor);
        if (cursor->failed || size > cursor->end - cursor->address) return false;
        uint64_t instructions = cursor->address + size;
        for (const char *next = augmentation + 1; *next; next++) {
            if (*next == 'R')
                common.pointer_encoding = cursor_byte(cursor);
            else if (*next == 'P')
                cursor_pointer(cursor, cursor_byte(cursor));
            else if (*next == 'L')
                cursor_byte(cursor);
            else if (*next == 'S')
                common.signal = true;
            else if (*next != 'B') /* aarch64: the key of the return address's signature */
                break;
        }
        if (cursor->failed || cursor->address > instructions) return false;
        cursor->address = instructions;
    }
    *ret_common = common;
    return !cursor->failed;
}

/* ---- From a row to a rule ---- */

/* Where a register is saved, as the rule says it: in words of 8 bytes from the anchor. */
static rule_place place_encode(const struct row *row, enum row_register index) {
    unsigned place = row->place[index];
    int64_t offset = row->offset[index];
    if (place == PLACE_SAME) return 0;
    bool at_base = place % 8 == PLACE_BASE && place / 8 == row->cfa_base;
    if (at_base)
        offset -= row->cfa == CFA_WORD ? 8 : row->cfa_offset;
    else if (place != PLACE_CFA || row->cfa == CFA_WORD)
        return RULE_LOST;
    if (offset % 8 != 0 || offset == 0 || offset / 8 != (rule_place)(offset / 8)) return RULE_LOST;
    return (rule_place)(offset / 8); /* which may be RULE_LOST itself */
}

static struct rule rule_of_kind(enum rule_kind kind) {
    return (struct rule){.cfa = kind};
}

#if defined(__x86_64__)

static uint64_t at_bit(rule_place place, unsigned bit) {
    return (uint64_t)(uint16_t)place << bit;
}

static bool is_signal_frame(const struct row *row) {
    return row->cfa == CFA_WORD && row->cfa_base == BASE_SP && row->cfa_offset == SIGNAL_SP;
}

static bool places_encode(const struct row *row, struct rule *rule) {
    rule->cfa |= at_bit(place_encode(row, ROW_FP), 32) | at_bit(place_encode(row, ROW_R15), 48);
    rule->saved = at_bit(place_encode(row, ROW_RBX), 0) | at_bit(place_encode(row, ROW_R12), 16) |
                  at_bit(place_encode(row, ROW_R13), 32) | at_bit(place_encode(row, ROW_R14), 48);
    return row->place[ROW_RETURN] == PLACE_CFA && row->offset[ROW_RETURN] == -8;
}

#else

static bool is_signal_frame(const struct row *row) {
    return true;
}

static bool places_encode(const struct row *row, struct rule *rule) {
    rule_place fp = place_encode(row, ROW_FP), link = place_encode(row, ROW_RETURN);
    rule->saved = (uint64_t)(uint32_t)fp << 32 | (uint32_t)link;
    return link != RULE_LOST;
}

#endif

static struct rule rule_encode(const struct row *row, bool signal) {
    if (row->place[ROW_RETURN] == PLACE_UNDEFINED) return rule_of_kind(RULE_START);
    if (signal) return rule_of_kind(is_signal_frame(row) ? RULE_SIGNAL : RULE_UNKNOWN);
    struct rule rule = rule_of_kind(row->cfa == CFA_WORD ? RULE_REALIGNED : RULE_CALL);
    rule.cfa |= (uint64_t)row->cfa_base << 4 | (uint64_t)((uint32_t)row->cfa_offset << 8);
    bool fits = row->cfa_offset >= -(1 << 23) && row->cfa_offset < 1 << 23;
    bool followed = places_encode(row, &rule) && fits && row->cfa != CFA_UNKNOWN;
    return followed && row->place[ROW_SP] == PLACE_SAME ? rule : rule_of_kind(RULE_UNKNOWN);
}

/* ---- Evaluation ---- */

/* An FDE and its CIE, with cursors at the instructions of each. */
struct entry {
    struct cursor cursor, common_cursor;
    struct common common;
    uint64_t begin, size;                  /* the code that the FDE is about */
    uint8_t window[96], common_window[48]; /* most FDEs and nearly all CIEs fit */
};

static bool entry_open(struct entry *entry, const struct mapping *mapping, uint64_t address) {
    struct cursor *cursor = &entry->cursor;
    cursor_begin(cursor, mapping, address, entry->window, sizeof entry->window);
    uint64_t length = cursor_fixed(cursor, 4);
    if (length == 0 || length > ENTRY_SIZE_MAX || length > cursor->end - cursor->address) return false;
    cursor->end = cursor->address + length;
    uint64_t here = cursor->address, back = cursor_fixed(cursor, 4);
    cursor_begin(
        &entry->common_cursor, mapping, here - back, entry->common_window, sizeof entry->common_window);
    if (cursor->failed || back == 0 || entry->common_cursor.address >= entry->common_cursor.end ||
        !common_parse(&entry->common_cursor, &entry->common))
        return false;

    entry->begin = cursor_pointer(cursor, entry->common.pointer_encoding);
    entry->size = cursor_pointer(cursor, entry->common.pointer_encoding & 0x0f);
    if (entry->common.augmented) cursor_skip(cursor, cursor_unsigned(cursor));
    return !cursor->failed;
}

/* RULE_FRAME_POINTER if the code of the FDE ends before the pc. */
static __attribute__((noinline)) struct rule rule_from_entry(
    const struct mapping *mapping, uint64_t address, uint64_t pc) {
    struct entry entry;
    if (!entry_open(&entry, mapping, address)) return rule_of_kind(RULE_UNKNOWN);
    if (pc - entry.begin >= entry.size) return rule_of_kind(RULE_FRAME_POINTER);

    struct cfa_program program = {.pc = pc,
        .begin = entry.begin,
        .code_alignment = entry.common.code_alignment,
        .data_alignment = entry.common.data_alignment,
        .pointer_encoding = entry.common.pointer_encoding};
    struct row initial = {0};
    if (!cfa_program_run(&entry.common_cursor, &program, &initial)) return rule_of_kind(RULE_UNKNOWN);
    struct row row = initial;
    program.initial = &initial;
    if (!cfa_program_run(&entry.cursor, &program, &row)) return rule_of_kind(RULE_UNKNOWN);
    return rule_encode(&row, entry.common.signal);
}

/* A pc without unwind information lies in generated code or hand-written assembly. It may also be the signal trampoline
 * of a libc that has no unwind information for it, or the function in which a stack begins that makecontext made. */
static __attribute__((noinline)) struct rule rule_without_information(
    const struct mapping *mapping, uint64_t pc) {
#if defined(__x86_64__)
    static const uint8_t trampoline[] = {
        0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}; /* mov $15,%rax; syscall */
#else
    static const uint8_t trampoline[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}; /* mov x8,#139; svc #0 */
#endif
    uint8_t code[sizeof trampoline];
    uint64_t address, begin, returned_to = pc + 1;
    if (mapping_copy_code(mapping, code, returned_to, sizeof code) &&
        memcmp(code, trampoline, sizeof code) == 0)
        return rule_of_kind(RULE_SIGNAL);
    /* See rule_begins_function. */
    if (mapping->header && fde_find(mapping, returned_to, &address, &begin) == FDE_FOUND &&
        begin == returned_to)
        return (struct rule){.cfa = RULE_START | 1 << 8};
    struct epilogue epilogue;
    return rule_of_kind(epilogue_read(mapping, returned_to, &epilogue) ? RULE_EPILOGUE : RULE_FRAME_POINTER);
}

bool rule_evaluate(const struct mapping *mapping, uint64_t pc, struct rule *ret_rule) {
    uint64_t address, begin;
    struct rule rule = rule_of_kind(RULE_FRAME_POINTER);
    if (mapping->unread) return false;
    if (mapping->header) {
        enum fde_result result = fde_find(mapping, pc, &address, &begin);
        if (result == FDE_STALE) return false;
        if (result == FDE_FOUND) rule = rule_from_entry(mapping, address, pc);
    }
    *ret_rule = rule_kind(rule) == RULE_FRAME_POINTER ? rule_without_information(mapping, pc) : rule;
    return true;
}

bool rule_extent(const struct mapping *mapping, uint64_t address, uint64_t *ret_begin, uint64_t *ret_size) {
    struct entry entry;
    if (!entry_open(&entry, mapping, address)) return false;
    *ret_begin = entry.begin;
    *ret_size = entry.size;
    return true;
}
