/* Where CPython keeps what the recorder reads: offsets in bytes.
 *
 * The offsets are part of the ABI of a minor version: extension modules would break if they changed within one. From
 * 3.13 on the interpreter describes itself: _PyRuntime begins with a table for debuggers (_Py_DebugOffsets). */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_LAYOUT_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How frames are linked. */
enum shape {
    SHAPE_OBJECTS,        /* 3.8, 3.9: frame objects, each interpreted by a C call of its own */
    SHAPE_OBJECTS_CFRAME, /* 3.10: likewise; each C call has a CFrame in its C frame */
    SHAPE_ENTRIES, /* 3.11: a C call interprets a run of frames, the outermost of which is marked; it has a
                             CFrame */
    SHAPE_SHIMS,   /* from 3.12: a C call interprets a run of frames, and then comes a frame of its own, a
                             shim, which lies in its C frame */
};

struct layout {
    uint8_t minor;
    enum shape shape;
    struct {
        uint16_t id;     /* up to 3.11: the thread's pthread_t */
        uint16_t top;    /* the innermost frame; in 3.11 and 3.12 the innermost CFrame, which names it */
        uint16_t cframe; /* SHAPE_OBJECTS_CFRAME: the innermost CFrame */
    } thread;
    struct {
        uint16_t frame, previous;
    } cframe;
    struct {
        uint16_t previous, code, instruction, owner, is_entry;
    } frame;
    struct {
        uint16_t name, file, first_line, lines, instructions, first_traceable;
    } code;
    uint16_t text;      /* where the letters of a str begin if all are ASCII */
    uint16_t wide_text; /* and if not */
};

/* The layout of CPython 3.`minor`. `runtime` is _PyRuntime, which is read from 3.13 on. False: the version is not
 * known, or it is a build without the interpreter's lock (free-threaded). */
bool python_layout(int minor, const void *runtime, struct layout *ret_layout);

#endif
