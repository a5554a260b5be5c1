/* C++'s operator new and operator delete.
 *
 * The C++ library's operators call malloc and free. If ours stand in front of them, a call takes fewer
 * instructions than without the recorder, and stacks begin at the line that says `new`. Whose operators serve the
 * program is decided at the start:
 *
 *     BY_MALLOC    The operators behind ours are the C++ library's, or those of an allocator such as jemalloc.
 *                  Ours serve the program, by malloc and free. When memory runs out, ours call the one behind
 *                  them, which calls the new-handler and throws.
 *     BY_PROGRAM   A library of the program has operators of its own. Ours call them, and record nothing. What
 *                  they get from malloc is recorded there.
 *     WITHDRAWN    There is no C++ library at the start. A plug-in that is loaded later must find its own
 *                  operators first, so ours are taken out of our symbol table.
 *
 * A program may define some of the forms, and rely on the C++ library's other forms to call these. So the case is
 * BY_MALLOC only if every form that the program finds is ours, and the plain new and delete behind ours are the
 * C++ library's or the allocator's. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_CXX_OPERATORS_H
#define MALLOSCOPE_RECORD_INTERCEPT_CXX_OPERATORS_H

/* The forms in the order of the tables. The entry code (entry_*.S) makes one function of each. */
#define OPERATORS_NEW(X)                                                                                     \
    X(0, _Znwm)               /* (size) */                                                                   \
    X(1, _Znam)               /* arrays */                                                                   \
    X(2, _ZnwmRKSt9nothrow_t) /* (size, nothrow) */                                                          \
    X(3, _ZnamRKSt9nothrow_t)                                                                                \
    X(4, _ZnwmSt11align_val_t) /* (size, alignment) */                                                       \
    X(5, _ZnamSt11align_val_t)                                                                               \
    X(6, _ZnwmSt11align_val_tRKSt9nothrow_t) /* (size, alignment, nothrow) */                                \
    X(7, _ZnamSt11align_val_tRKSt9nothrow_t)

#define OPERATORS_DELETE(X)                                                                                  \
    X(0, _ZdlPv)                                                                                             \
    X(1, _ZdaPv)                                                                                             \
    X(2, _ZdlPvm)                                                                                            \
    X(3, _ZdaPvm)                                                                                            \
    X(4, _ZdlPvRKSt9nothrow_t)                                                                               \
    X(5, _ZdaPvRKSt9nothrow_t)                                                                               \
    X(6, _ZdlPvSt11align_val_t)                                                                              \
    X(7, _ZdaPvSt11align_val_t)                                                                              \
    X(8, _ZdlPvmSt11align_val_t)                                                                             \
    X(9, _ZdaPvmSt11align_val_t)                                                                             \
    X(10, _ZdlPvSt11align_val_tRKSt9nothrow_t)                                                               \
    X(11, _ZdaPvSt11align_val_tRKSt9nothrow_t)

#define NEW_FORMS    8
#define DELETE_FORMS 12

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>

enum operators { BY_MALLOC, BY_PROGRAM, WITHDRAWN };

/* Called once, at the start. */
void cxx_operators_set(enum operators whose);

/* Whether the program finds, by the name of any form, another function than ours: one that is defined before us. */
bool cxx_operators_are_replaced(void);

#endif
#endif
