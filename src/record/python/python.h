/* Python: the interpreter's frames, for samples that are taken inside CPython.
 *
 * A thread that holds the interpreter's lock can read its own interpreter state as it is, as tracemalloc
 * does: the thread is inside an allocation, and nobody else changes the state. The frames are merged into the
 * native stack in the place of the C function that interprets them (_PyEval_EvalFrameDefault):
 *
 *     native   main ─ ... ─ PyEval ─ list_sort ─ PyEval ─ malloc
 *     merged   main ─ ... ─ app.py:main ─ app.py:rank ─ list_sort ─ app.py:key ─ malloc
 *
 * From 3.11 on one such function interprets a run of frames. Which function a run belongs to is told by an
 * address: something of the run lies in the function's part of the C stack. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

/* Looks whether this process has an interpreter. To be called once, before threads begin. `objects`: every
 * object is to be seen (python_objects.h). */
void python_start(bool objects);
/* Gives the interpreter back what was taken from it: recording has ended for good. */
void python_end(void);

/* Frames of the calling thread, innermost first. */
struct native_stack {
    uint64_t *frames; /* frame words */
    uint64_t *places; /* the stack pointer of each (unwind.h) */
    uint32_t count;
};

struct python_stack {
    uint64_t *frames;
    uint64_t
        *places; /* where on the C stack the run of each was begun; 0: in the next interpreting function */
    uint32_t max, count;
};

/* Fills the stack. False: the calling thread executes no Python code. NULL where there is no interpreter,
 * which may change: to be read once. */
typedef bool python_walk(struct python_stack *stack);
extern python_walk *_Atomic hook_python_walk;

/* A number that stands for what the stack would hold; 0: nothing. Can be asked where there is an interpreter.
 * `is_locked`: the calling thread is known to hold the interpreter's lock. */
typedef uint64_t python_sign(bool is_locked);
extern python_sign *hook_python_sign;

/* Puts the Python frames among the native ones. There is room for both. Returns how many they are. */
typedef uint32_t python_merge(
    const struct python_stack *python, const struct native_stack *native, struct native_stack *merged);
extern python_merge *hook_python_merge;

/* The calling thread ends, and what is known of its frames. */
void python_fingerprint_free(void);

/* An interpreter that a program opens by dlopen is found in three steps. The capture of stacks comes to know
 * the library (unwind_note); a thread is seen to execute code of it, so that it must be whole; and before any
 * library is closed, it is left until it is seen again. */
struct mapped_code;
void python_note_module(const struct mapped_code *code, uint32_t number);
void python_look_at_stack(const struct native_stack *native);
void python_before_closing(void);
void python_after_closing(void);

#endif
