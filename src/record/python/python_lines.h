/* Line numbers of Python code, from the tables that the interpreter keeps with it. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_LINES_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

struct line_table {
    const uint8_t *bytes;
    size_t size;
    int minor; /* version of Python 3: each has its own format */
    uint32_t first_line;
};

/* The line of the instruction `offset` bytes into the code; 0 if it has none. */
uint32_t python_lines_find(const struct line_table *table, uint32_t offset);

#endif
