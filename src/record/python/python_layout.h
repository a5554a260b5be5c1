/* Where CPython keeps what is read here: offsets in bytes.
 *
 * They belong to the ABI of a minor version: extension modules would break if they moved. From 3.13 on the
 * interpreter describes itself, in a table for debuggers (_Py_DebugOffsets) with which _PyRuntime begins. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_LAYOUT_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How frames are linked. */
enum shape {
    SHAPE_OBJECTS,        /* frame objects, each interpreted by a C function of its own */
    SHAPE_OBJECTS_CFRAME, /* the same, and a struct on the C stack for each */
    SHAPE_ENTRIES,        /* runs of frames; the last of a run is marked, and has such a struct */
    SHAPE_SHIMS,          /* runs of frames; behind each a frame that lies on the C stack itself */
};

struct layout {
    uint8_t minor;
    enum shape shape;
    struct {
        uint16_t id;     /* up to 3.11 */
        uint16_t top;    /* the innermost frame, or the innermost struct on the C stack */
        uint16_t cframe; /* SHAPE_OBJECTS_CFRAME: that */
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
    uint16_t text; /* of ASCII letters; those of others begin `wide_text` bytes after the object's start */
    uint16_t wide_text;
};

/* Of CPython 3.`minor`. `runtime`: _PyRuntime, which is looked at from 3.13 on. False: a version that is not
 * known, or built in an unusual way (without the interpreter's lock). */
bool python_layout(int minor, const void *runtime, struct layout *ret_layout);

#endif
