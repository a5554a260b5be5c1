/* The hooks of dlopen and dlclose.
 *
 * A library that is opened with RTLD_DEEPBIND finds libc's free before ours, and would hand a marked block to it.
 * From then on blocks are not marked.
 *
 * When a library is closed, another one may be mapped at its addresses. Stack capture has to be told (unwind.h).
 * Most calls of dlclose unmap nothing, because the library is still in use: the dynamic linker's count of
 * unloaded objects tells.
 *
 * dlopen chooses by its caller's address where to search. So our dlopen jumps to libc's from the entry code
 * (entry_*.S), and nothing of ours runs after it. dlclose does not look at its caller, and is called from here. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H
#define MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H

/* Our dlclose, under a name that no other library defines (got_takeover.c). */
int dl_hooks_dlclose(void *handle);

#endif
