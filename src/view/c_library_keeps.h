/* Memory that the C library and the loader allocate for themselves and keep until the program ends: buffers of
 * stdio, thread-local storage, locales, time zones, loaded libraries. No program can free it, so it is no leak. */
#ifndef MALLOSCOPE_VIEW_C_LIBRARY_KEEPS_H
#define MALLOSCOPE_VIEW_C_LIBRARY_KEEPS_H

#include "view/source_frames.h"

/* Whether the stack is that of such an allocation. */
bool c_library_keeps(const struct source_frames *frames);

#endif
