/* CPython's frames, for samples that are taken while a thread runs Python code. The way in to this folder.
 *
 * A thread that holds the interpreter's lock (the GIL) can read its own interpreter state: the thread is inside an
 * allocation, where the state is consistent, and no other thread changes it. tracemalloc reads it in the same
 * situation. The Python frames are merged into the native stack, in the place of the C function that interprets
 * them (_PyEval_EvalFrameDefault):
 *
 *     native   main ─ ... ─ PyEval ─ list_sort ─ PyEval ─ malloc
 *     merged   main ─ ... ─ app.py:main ─ app.py:rank ─ list_sort ─ app.py:key ─ malloc
 *
 * From 3.11 on one call of that function interprets a run of frames: Python functions that call each other without C
 * in between. An address tells which call a run belongs to: the interpreter keeps something for the run in the
 * call's part of the C stack. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Looks whether this process has an interpreter. To be called once, when recording begins. `objects`: every object
 * of the interpreter's own allocator is to be seen (python_objects.h). */
void python_start(bool objects);
/* Gives the interpreter back what was replaced in it: recording has ended for good. */
void python_end(void);

/* Whether there is an interpreter whose frames can be read. It may come and go while the program runs, so a caller
 * that asks several times may get different answers. The functions below may be called when it was seen true. */
extern _Atomic bool python_is_present;

/* Frames of the calling thread, innermost first. */
struct native_stack {
    uint64_t *frames; /* frame words (core/recording.h) */
    uint64_t *places; /* the stack pointer of each (unwind.h) */
    uint32_t count;
};

struct python_stack {
    uint64_t *frames; /* frame words */
    /* For each frame, an address in the C frame of the function that interprets its run. 0 where the interpreter
     * has none (3.8 and 3.9): then each frame belongs to the next interpreting function. */
    uint64_t *places;
    uint32_t max, count;
};

/* Fills the stack. False: the calling thread runs no Python code, or does not hold the interpreter's lock. Not to be
 * called in a signal handler, which may have interrupted the interpreter while it changed its frames. */
bool python_walk_frames(struct python_stack *stack);

/* A hash of what python_walk_frames would return, which takes much less time; 0: it would return false. `is_locked`:
 * the calling thread is known to hold the interpreter's lock. */
uint64_t python_fingerprint(bool is_locked);

/* Puts the Python frames among the native ones, into `merged`, which has room for both. */
void python_merge_frames(
    const struct python_stack *python, const struct native_stack *native, struct native_stack *merged);

/* Frees what python_fingerprint remembers for the calling thread, which ends. */
void python_fingerprint_free(void);

/* An interpreter that a program opens with dlopen is found in steps:
 *   1. python_note_module: the unwinder has come to know a module, which may be libpython by its name.
 *   2. python_look_at_stack: a thread was seen to execute code of that library. So the dynamic linker has relocated
 *      it, and its symbols can be looked up.
 *   3. python_before_closing, python_after_closing: around every dlclose. The interpreter may be gone afterwards, so
 *      it is left alone until a stack shows it again. */
struct mapped_code; /* platform/maps.h */
void python_note_module(const struct mapped_code *code, uint32_t number);
void python_look_at_stack(const struct native_stack *native);
void python_before_closing(void);
void python_after_closing(void);

#endif
