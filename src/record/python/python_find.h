/* Where the interpreter is, by the names that it exports. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_FIND_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct interpreter {
    int minor; /* of version 3 */
    const void *runtime, *code_type;
    const void *(*thread_state)(void); /* of this thread, if it holds the lock; up to 3.11 of whoever does */
    const void *(*own_thread_state)(void); /* up to 3.11: the first that this thread had, or NULL */
    uint64_t evaluate, evaluate_size;      /* the C function that interprets */
};

/* In the executable or a library that it was linked with, as the dynamic linker finds it. */
bool python_find(struct interpreter *ret_interpreter);

/* In the module at `base`, of which the calling thread executes code: so it is whole, and stays for the
 * moment. Takes no lock. */
bool python_find_in(uint64_t base, struct interpreter *ret_interpreter);

#endif
