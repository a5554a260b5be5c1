/* libiberty's demangler within bounds.
 *
 * A mangled name refers back to its own parts. Each reference can double the text, so that a name of 400 letters stands
 * for one of 2^40, and some parts take as long without any text. The names are the program's, which may be hostile. So
 * the demangler is stopped when it has written DEMANGLED_SIZE_MOST bytes, or when a name takes too long. */
#ifndef MALLOSCOPE_SYMBOL_BOUNDED_DEMANGLER_H
#define MALLOSCOPE_SYMBOL_BOUNDED_DEMANGLER_H

#include <stddef.h>

#define DEMANGLED_SIZE_MOST 65536u

/* The demangled form of a mangled name of C++ or Rust. NULL: it is none, or it was given up. The caller frees it. May
 * be called by several threads at once. */
char *bounded_demangler_name(const char *mangled);

/* How many names were given up so far, since they are too long or take too long. */
size_t bounded_demangler_given_up(void);

#endif
