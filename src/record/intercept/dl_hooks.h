/* The hooks of dlclose and dlmopen.
 *
 * When a library is closed, another one may be mapped at its addresses. Stack capture has to be told (unwind.h).
 * Most calls of dlclose unmap nothing, because the library is still in use: the dynamic linker's count of
 * unloaded objects tells.
 *
 * A library that dlmopen puts into a linker namespace of its own is noted as not recorded. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H
#define MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H

/* Our dlclose, under a name that no other library defines (got_takeover.c). */
int dl_hooks_dlclose(void *handle);

/* The dlclose that follows ours in the search order. */
const void *dl_hooks_find_dlclose(void);

#endif
