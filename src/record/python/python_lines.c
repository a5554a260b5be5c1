#include "record/python/python_lines.h"

/* 3.8 and 3.9: pairs of bytes (distance, step). `distance` bytes of code further on the line changes by `step`. */
static int64_t by_pairs_of_steps(const struct line_table *table, uint32_t offset) {
    uint32_t at = 0;
    int64_t line = table->first_line;
    for (size_t i = 0; i + 1 < table->size; i += 2) {
        at += table->bytes[i];
        if (at > offset) break;
        line += (int8_t)table->bytes[i + 1];
    }
    return line;
}

/* 3.10: pairs of bytes (length, step). The next `length` bytes of code are on a line that differs from the last one
 * by `step`; INT8_MIN: they have no line. */
static int64_t by_pairs_of_ranges(const struct line_table *table, uint32_t offset) {
    uint32_t end = 0;
    int64_t line = table->first_line;
    for (size_t i = 0; i + 1 < table->size; i += 2) {
        int8_t step = (int8_t)table->bytes[i + 1];
        end += table->bytes[i];
        if (step != INT8_MIN) line += step;
        if (offset < end) return step == INT8_MIN ? 0 : line;
    }
    return 0;
}

struct reader {
    const uint8_t *at, *end;
};

/* A number of six bits a byte, the lowest bits first. Bit 6 of a byte says that another byte follows. */
static uint64_t read_number(struct reader *reader) {
    uint64_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 60; shift += 6) {
        uint8_t byte = *reader->at++;
        number |= (uint64_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40)) break;
    }
    return number;
}

static int64_t read_signed(struct reader *reader) {
    uint64_t number = read_number(reader);
    return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

/* From 3.11 on: an entry for each stretch of instructions. Its first byte has a kind, which tells how line and columns
 * are encoded, and the length of the stretch. Columns are skipped. */
enum entry { ENTRY_ONE_LINE = 10, ENTRY_NO_COLUMNS = 13, ENTRY_LONG = 14, ENTRY_NONE = 15 };

static int64_t by_entries(const struct line_table *table, uint32_t offset) {
    struct reader reader = {table->bytes, table->bytes + table->size};
    uint64_t end = 0;
    int64_t line = table->first_line;
    while (reader.at < reader.end) {
        uint8_t first = *reader.at++;
        unsigned kind = first >> 3 & 15;
        end += ((first & 7) + 1u) * 2;
        if (kind < ENTRY_ONE_LINE) {
            reader.at += 1;
        } else if (kind < ENTRY_NO_COLUMNS) {
            line += kind - ENTRY_ONE_LINE;
            reader.at += 2;
        } else if (kind != ENTRY_NONE) {
            line += read_signed(&reader);
            for (int i = 0; i < 3 && kind == ENTRY_LONG; i++) read_number(&reader);
        }
        if (offset < end) return kind == ENTRY_NONE ? 0 : line;
    }
    return 0;
}

uint32_t python_lines_find(const struct line_table *table, uint32_t offset) {
    int64_t line = table->minor <= 9    ? by_pairs_of_steps(table, offset)
                   : table->minor == 10 ? by_pairs_of_ranges(table, offset)
                                        : by_entries(table, offset);
    return line > 0 ? (uint32_t)line : 0;
}
