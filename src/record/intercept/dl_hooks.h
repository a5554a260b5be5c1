/* The hooks of dlclose and dlmopen.
 *
 * When a library is closed, another one may be mapped at its addresses. Stack capture has to be told (unwind.h).
 * Most calls of dlclose unmap nothing, because the library is still in use: the dynamic linker's count of
 * unloaded objects tells.
 *
 * A library that dlmopen puts into a linker namespace of its own is noted as not recorded. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H
#define MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H

#include <link.h>
#include <stddef.h>

/* libc's dl_iterate_phdr: it holds the dynamic linker's lock while it calls `visit`, and nothing is loaded or closed
 * meanwhile. */
int dl_hooks_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data);

/* What libc's dlsym finds for the program by `name`, or NULL. An error leaves no trace: otherwise the program's dlerror
 * would show it; and its text, which was allocated before recording began, would be freed by a later dlsym as a block
 * that the recording does not know. To be called when recording begins. */
const void *dl_hooks_find(const char *name);

/* Our dlclose, under a name that no other library defines (got_takeover.c). */
int dl_hooks_dlclose(void *handle);

/* The dlclose that follows ours in the search order. */
const void *dl_hooks_find_dlclose(void);

#endif
