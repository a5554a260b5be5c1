/* C++'s operator new and delete.
 *
 * The C++ library's own go through malloc and free. Standing in front of them costs less than letting them
 * call us: fewer instructions than without the recorder, and stacks that begin at the line that says `new`.
 *
 *   BY_MALLOC   the C++ library's, or those of an allocator such as jemalloc: served by malloc and free. When
 * memory is short the one behind us is asked, which calls the new-handler and throws BY_PROGRAM  a library of
 * the program has its own: called as they are, and not recorded here (what they get from malloc is)
 *
 *   WITHDRAWN   no C++ library is there at the start. What is loaded later shall find its own operators
 * first: ours are taken out of our symbol table
 *
 * A program may define some of the forms and rely on the C++ library's others to call them. So ours serve
 * only if every form that the program would find is ours, and every form behind ours the C++ library's or the
 * allocator's. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_CXX_OPERATORS_H
#define MALLOSCOPE_RECORD_INTERCEPT_CXX_OPERATORS_H

/* The forms in the order of the tables; the entry code makes one function of each. */
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

/* Says whose they are. */
void cxx_operators_set(enum operators whose);

/* Would the program, by any form's name, find another function than ours? */
bool cxx_operators_are_replaced(void);

#endif
#endif
