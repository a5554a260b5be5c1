/* Libraries that the program opens and closes.
 *
 * One that is opened with RTLD_DEEPBIND finds libc's free before ours. Of closings the capture of stacks has
 * to know: another one may take the place (unwind.h). dlclose, unlike dlopen, does not care who calls it, so
 * it can be called from here. Most closings unmap nothing, because the library is still in use: the loader's
 * count of what it has unmapped tells. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H
#define MALLOSCOPE_RECORD_INTERCEPT_DL_HOOKS_H

/* dlclose, by a name that no other library can have (got_takeover.c). */
int dl_hooks_dlclose(void *handle);

#endif
