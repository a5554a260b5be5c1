/* Finds the interpreter in the process, by the symbols that it exports. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_FIND_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct interpreter {
    int minor;             /* it is Python 3.`minor` */
    const void *runtime;   /* _PyRuntime */
    const void *code_type; /* PyCode_Type */
    /* The state of the calling thread if that holds the interpreter's lock, otherwise NULL. Up to 3.11: the state of
     * the thread that holds the lock, whichever that is. */
    const void *(*thread_state)(void);
    /* Up to 3.11: the first state that the calling thread had, or NULL. Later: NULL. */
    const void *(*own_thread_state)(void);
    uint64_t evaluate, evaluate_size; /* _PyEval_EvalFrameDefault, the C function that interprets */
};

/* In the executable or a library that it was linked with, by means of the dynamic linker. False: there is none. */
bool python_find(struct interpreter *ret_interpreter);

/* In the library that is mapped at `base`. The calling thread must be executing code of it, so that the library is
 * relocated and stays mapped. Takes no lock of the dynamic linker's. */
bool python_find_in(uint64_t base, struct interpreter *ret_interpreter);

#endif
