/* Python's small objects, as a heap of their own (`--python-objects`).
 *
 * The interpreter's own allocator (pymalloc) cuts objects of up to 512 bytes out of large pieces of memory, so malloc
 * sees the pieces alone. Functions of ours are put in front of that allocator. They sample as malloc's hooks do: an
 * object that is not sampled costs a comparison with a countdown; its free costs one with the mark that sampled
 * objects carry in front of them (sample/mark.h). */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_OBJECTS_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_OBJECTS_H

/* Puts the functions in front of the interpreter's allocator. To be called before the interpreter is initialized: an
 * object must be freed by the allocator that made it. */
void python_objects_start(void);

#endif
