/* What the files that read the interpreter (python*.c) share: where it is, and what is read of its frames. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_INTERNALS_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_INTERNALS_H

#include "record/python/python.h"
#include "record/python/python_find.h"
#include "record/python/python_layout.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAMES_WALKED 100000 /* deeper recursion than any interpreter allows */
#define OBJECT_TYPE   8      /* of every object */

struct python {
    struct layout layout;
    struct interpreter interpreter;
    uint64_t evaluate; /* the word of a frame at the beginning of the C function that interprets */
};
extern struct python python;

static inline const void *pointer_at(const void *base, uint16_t offset) {
    return *(const void *const *)((const char *)base + offset);
}
static inline int32_t number_at(const void *base, uint16_t offset) {
    return *(const int32_t *)((const char *)base + offset);
}
/* From 3.14 on the lowest bits of a reference in a frame tell how it is counted. */
static inline const void *object_at(const void *base, uint16_t offset) {
    return (const void *)((uintptr_t)pointer_at(base, offset) & ~(uintptr_t)3);
}

/* The calling thread's state, if it holds the interpreter's lock; otherwise NULL (python_walk.c). */
const void *python_walk_thread(void);

/* Of that: its innermost frame, or NULL. */
static inline const void *python_top(const void *thread) {
    const struct layout *layout = &python.layout;
    const void *top = pointer_at(thread, layout->thread.top);
    bool is_cframe = layout->shape == SHAPE_ENTRIES || layout->minor == 12;
    return top && is_cframe ? pointer_at(top, layout->cframe.frame) : top;
}

/* The word (core/recording.h) for a code object at an instruction, so many bytes from its first
 * (python_code.c). */
uint64_t python_code_word(const void *code, uint32_t instruction);

python_walk python_walk_frames;   /* python_walk.c */
python_merge python_merge_frames; /* python_merge.c */
python_sign python_sign_frames;   /* python_signature.c */

/* Code objects that die are counted, for signatures. Only one interpreter at a time is watched
 * (python_signature.c). */
void python_code_deaths_watch(void);
void python_code_deaths_unwatch(void);

#endif
