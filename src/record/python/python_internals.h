/* What the files of this folder share: where the interpreter is, and how its memory is read. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_INTERNALS_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_INTERNALS_H

#include "record/python/python.h"
#include "record/python/python_find.h"
#include "record/python/python_layout.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FRAMES_WALKED 100000 /* frames after which every walk ends */
#define OBJECT_TYPE   8      /* offset of the type, in every object */

/* Filled before python_is_present becomes true. */
struct python {
    struct layout layout;
    struct interpreter interpreter;
    uint64_t evaluate; /* the frame word for the first instruction of _PyEval_EvalFrameDefault */
};
extern struct python python;

static inline const void *pointer_at(const void *base, uint16_t offset) {
    return *(const void *const *)((const char *)base + offset);
}
static inline int32_t number_at(const void *base, uint16_t offset) {
    return *(const int32_t *)((const char *)base + offset);
}
/* An object that a frame refers to. From 3.14 on the lowest bits of such a reference say how it is counted. */
static inline const void *object_at(const void *base, uint16_t offset) {
    return (const void *)((uintptr_t)pointer_at(base, offset) & ~(uintptr_t)3);
}

/* ---- python_walk.c ---- */

/* The calling thread's state, if it holds the interpreter's lock; otherwise NULL. */
const void *python_walk_thread(void);

/* The innermost frame of a thread's state, or NULL. */
static inline const void *python_walk_top(const void *thread) {
    const struct layout *layout = &python.layout;
    const void *top = pointer_at(thread, layout->thread.top);
    bool is_cframe = layout->shape == SHAPE_ENTRIES || layout->minor == 12;
    return top && is_cframe ? pointer_at(top, layout->cframe.frame) : top;
}

/* ---- python_code.c ---- */

/* The frame word (core/recording.h) for a code object at the instruction `instruction` bytes from its first. */
uint64_t python_code_word(const void *code, uint32_t instruction);

/* ---- python_code_deaths.c ---- */

/* How many code objects have died. As long as the number does not change, an address of an instruction stands for
 * one and the same code. Relaxed: code is freed by a thread that holds the interpreter's lock, and its memory is used
 * again by a thread that took the lock later; the lock hands the number on. */
extern _Atomic uint64_t python_code_deaths;

/* Has the interpreter count them from now on; or no more. One interpreter is watched at a time. */
void python_code_deaths_watch(void);
void python_code_deaths_unwatch(void);

#endif
