/* Line numbers of Python code, from the tables that the interpreter keeps with it. */
#ifndef MALLOSCOPE_SYMBOL_PYTHON_LINES_H
#define MALLOSCOPE_SYMBOL_PYTHON_LINES_H

#include "model/model.h"

/* The line of the instruction `offset` bytes into the code; 0 if it has none. */
int python_line(const struct model_code *code, uint32_t offset);

#endif
