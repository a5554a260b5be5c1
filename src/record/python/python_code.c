#include "core/code_table.h"
#include "core/name_table.h"
#include "record/python/python_internals.h"
#include "record/python/python_lines.h"
#include "record/sample/recorder_state.h"

#include <stdatomic.h>
#include <string.h>

#define NAME_MOST 600 /* bytes of a function's name that are kept */

/* Offsets in objects that have been where they are in all versions: of str, and of bytes. */
#define TEXT_LENGTH 16 /* of both */
#define TEXT_HASH   24
#define TEXT_STATE  32
#define BYTES_START 32

static const void *name_of(const void *code) {
    return pointer_at(code, python.layout.code.name);
}

/* A hash of a bytes object that reads little of it: its length, and its first and last eight bytes. */
static uint64_t sketch_of(const void *bytes) {
    uint64_t first = 0, last = 0, size = (uintptr_t)pointer_at(bytes, TEXT_LENGTH),
             some = size < 8 ? size : 8;
    const char *start = (const char *)bytes + BYTES_START;
    memcpy(&first, start, some);
    memcpy(&last, start + size - some, some);
    return (first * UINT64_C(0x632be59bd9b4e019) ^ last) * UINT64_C(0x9e3779b97f4a7c15) + size;
}

/* A number that stands for one code object. Its address does not suffice: the memory of a code object that died may
 * hold another one, often of the same name. */
static uint64_t key_of(const void *code) {
    const void *name = name_of(code), *lines = pointer_at(code, python.layout.code.lines);
    uint64_t a = (uintptr_t)code * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t b = (uintptr_t)name * UINT64_C(0xc2b2ae3d27d4eb4f);
    uint64_t c = (uintptr_t)lines * UINT64_C(0x165667b19e3779f9) ^ sketch_of(lines);
    uint64_t d = (uintptr_t)pointer_at(name, TEXT_HASH) +
                 (uint64_t)number_at(code, python.layout.code.first_line) * UINT64_C(0x27d4eb2f165667c5);
    uint64_t key = a ^ (b << 21 | b >> 43) ^ (c << 42 | c >> 22) ^ d;
    return (key ^ key >> 32) | 1;
}

static uint32_t character_at(const void *letters, unsigned width, size_t index) {
    switch (width) {
    case 1:
        return ((const uint8_t *)letters)[index];
    case 2:
        return ((const uint16_t *)letters)[index];
    default:
        return ((const uint32_t *)letters)[index];
    }
}

/* The text of a str as UTF-8, cut to fit. */
static void copy_text(const void *object, char *text, size_t size) {
    uint32_t state = (uint32_t)number_at(object, TEXT_STATE);
    unsigned width = state >> 2 & 7;
    bool is_ascii = state >> 6 & 1, is_compact = state >> 5 & 1;
    size_t length = (size_t)pointer_at(object, TEXT_LENGTH), at = 0;
    const char *letters = (const char *)object + (is_ascii ? python.layout.text : python.layout.wide_text);
    if (!is_compact) letters = "?", length = width = 1;
    for (size_t i = 0; i < length && at + 5 < size; i++) {
        uint32_t c = character_at(letters, width, i);
        if (c < 0x80) {
            text[at++] = (char)(c ? c : '?');
        } else if (c < 0x800) {
            text[at++] = (char)(0xc0 | c >> 6);
            text[at++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            text[at++] = (char)(0xe0 | c >> 12);
            text[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            text[at++] = (char)(0x80 | (c & 0x3f));
        } else {
            text[at++] = (char)(0xf0 | c >> 18);
            text[at++] = (char)(0x80 | (c >> 12 & 0x3f));
            text[at++] = (char)(0x80 | (c >> 6 & 0x3f));
            text[at++] = (char)(0x80 | (c & 0x3f));
        }
    }
    text[at] = '\0';
}

static __attribute__((noinline)) uint32_t note_code(const void *object, uint64_t key) {
    char name[NAME_MOST], file[NAME_LENGTH];
    copy_text(name_of(object), name, sizeof name);
    copy_text(pointer_at(object, python.layout.code.file), file, sizeof file);
    struct code code = {.name = name,
        .file = name_table_note(&recorder.recording, file),
        .first_line = (uint32_t)number_at(object, python.layout.code.first_line)};
    return code_table_note(&recorder.recording, key, &code);
}

/* ---- lines ---- */

/* A cache of lines that were looked up lately, shared by all threads. A word has the line in its lowest LINE_BITS
 * bits, and above them the bits of a hash of code and instruction, as a check. The lowest bits of the hash select
 * the word. */
#define LINES_KNOWN   4096u
#define LINE_BITS     24
#define LINE_CHECK(h) ((h) >> LINE_BITS << LINE_BITS)

static _Atomic uint64_t lines_known[LINES_KNOWN];

static uint32_t find_line(const void *code, uint32_t offset) {
    const void *bytes = pointer_at(code, python.layout.code.lines);
    struct line_table table = {.bytes = (const uint8_t *)bytes + BYTES_START,
        .size = (size_t)pointer_at(bytes, TEXT_LENGTH),
        .minor = python.layout.minor,
        .first_line = (uint32_t)number_at(code, python.layout.code.first_line)};
    return python_lines_find(&table, offset);
}

static uint32_t line_of(const void *code, uint64_t key, uint32_t offset) {
    uint64_t hash = (key ^ offset) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    _Atomic uint64_t *known = &lines_known[hash % LINES_KNOWN];
    /* Relaxed: the word is complete in itself; its check says what it belongs to. */
    uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
    if (LINE_CHECK(word) == LINE_CHECK(hash)) return (uint32_t)(word & ((1u << LINE_BITS) - 1));
    uint32_t line = find_line(code, offset);
    if (line >> LINE_BITS == 0) atomic_store_explicit(known, LINE_CHECK(hash) | line, memory_order_relaxed);
    return line;
}

uint64_t python_code_word(const void *code, uint32_t instruction) {
    uint64_t key = key_of(code);
    uint32_t number = code_table_find(key);
    if (number == CODE_NONE) number = note_code(code, key);
    return (uint64_t)FRAME_PYTHON << FRAME_KIND_SHIFT | (uint64_t)number << FRAME_CODE_SHIFT |
           line_of(code, key, instruction);
}
