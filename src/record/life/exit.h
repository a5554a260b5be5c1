/* The beginning and the end of the process: the library's constructor starts recording, its destructor finishes
 * it, and so do the hooks of _exit and _Exit, which run no destructors. */
#ifndef MALLOSCOPE_RECORD_LIFE_EXIT_H
#define MALLOSCOPE_RECORD_LIFE_EXIT_H

/* Our _exit, under a name that no other library defines: got_takeover.c must not find another library's. */
_Noreturn void exit_hook(int status);

#endif
