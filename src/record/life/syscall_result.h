#ifndef MALLOSCOPE_RECORD_LIFE_SYSCALL_RESULT_H
#define MALLOSCOPE_RECORD_LIFE_SYSCALL_RESULT_H

/* Turns what the kernel returns into what libc's syscall() returns: -1 and errno for an error. The entry code's
 * syscall ends with it, too. */
long syscall_result(long result);

#endif
