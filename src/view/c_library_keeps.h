/* What the C library and the loader allocate for themselves and keep, on purpose, until the program ends:
 * buffers of stdio, the threads' storage, locales, time zones, loaded libraries. No program can free it. */
#ifndef MALLOSCOPE_VIEW_C_LIBRARY_KEEPS_H
#define MALLOSCOPE_VIEW_C_LIBRARY_KEEPS_H

#include "view/source_frames.h"

bool c_library_keeps(const struct source_frames *frames);

#endif
