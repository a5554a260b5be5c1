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
    /* 3.11: a C call interprets a run of frames, the outermost of which is marked (is_entry); it has a CFrame. */
    SHAPE_ENTRIES,
    /* From 3.12 on: a C call interprets a run of frames. Outside of the outermost comes a frame that belongs to the C
     * call itself, a shim, which lies in its C frame. */
    SHAPE_SHIMS,
};

/* Offsets of members of CPython's structures, in bytes. A member that a version lacks has 0. */
struct layout {
    uint8_t minor; /* the version is 3.minor */
    enum shape shape;
    struct {             /* of PyThreadState */
        uint16_t id;     /* up to 3.11: the thread's pthread_t */
        uint16_t top;    /* the innermost frame; in 3.11 and 3.12 the innermost CFrame, which points to it */
        uint16_t cframe; /* SHAPE_OBJECTS_CFRAME: the innermost CFrame */
    } thread;
    struct {               /* of CFrame, which a C call that interprets Python code has on its stack */
        uint16_t frame;    /* the innermost frame that this C call interprets */
        uint16_t previous; /* the CFrame of the C call outside of it */
    } cframe;
    struct {                  /* of a frame: PyFrameObject up to 3.10, then _PyInterpreterFrame */
        uint16_t previous;    /* the frame that called it */
        uint16_t code;        /* its code object */
        uint16_t instruction; /* it is at: offset up to 3.9, number in 3.10, then address */
        uint16_t owner;       /* from 3.11: who owns the frame's memory (thread, generator, C stack) */
        uint16_t is_entry;    /* 3.11: whether it is the outermost frame of its C call */
    } frame;
    struct {           /* of PyCodeObject */
        uint16_t name; /* the qualified name from 3.11 on */
        uint16_t file;
        uint16_t first_line;
        uint16_t lines;           /* the line table */
        uint16_t instructions;    /* from 3.11: where the instructions begin */
        uint16_t first_traceable; /* from 3.11: the first instruction that belongs to a source line */
    } code;
    uint16_t text;      /* of a str: its characters if all of them are ASCII */
    uint16_t wide_text; /* of a str: its characters if not all of them are */
};

/* The layout of CPython 3.`minor`. `runtime` is _PyRuntime, which is read from 3.13 on. False: the version is not
 * known, or it is a build without the interpreter's lock (free-threaded). */
bool python_layout(int minor, const void *runtime, struct layout *ret_layout);

#endif
