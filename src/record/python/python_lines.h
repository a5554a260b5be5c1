/* Line numbers of Python code, from the table that each code object has (co_lnotab, co_linetable). */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_LINES_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

struct line_table {
    const uint8_t *bytes;
    size_t size;
    int minor; /* of Python 3.`minor`, which tells the format */
    uint32_t first_line;
};

/* The line of the instruction that is `offset` bytes into the code; 0: it has none. */
uint32_t python_lines_find(const struct line_table *table, uint32_t offset);

#endif
