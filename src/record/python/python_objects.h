/* Python's objects, which the interpreter's own allocator cuts out of large pieces of memory: each becomes
 * visible, as a heap of its own, if the user asks for it. */
#ifndef MALLOSCOPE_RECORD_PYTHON_PYTHON_OBJECTS_H
#define MALLOSCOPE_RECORD_PYTHON_PYTHON_OBJECTS_H

/* Takes its place in front of the interpreter's allocator. To be called before the interpreter begins. */
void python_objects_start(void);

#endif
