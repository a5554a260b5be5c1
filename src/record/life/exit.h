/* The beginning and the end of the process. */
#ifndef MALLOSCOPE_RECORD_LIFE_EXIT_H
#define MALLOSCOPE_RECORD_LIFE_EXIT_H

/* _exit, by a name that no other library can have (got_takeover.c). */
_Noreturn void exit_hook(int status);

#endif
