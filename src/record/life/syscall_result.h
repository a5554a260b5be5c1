#ifndef MALLOSCOPE_RECORD_LIFE_SYSCALL_RESULT_H
#define MALLOSCOPE_RECORD_LIFE_SYSCALL_RESULT_H

/* As libc's syscall() returns it: -1 and errno for an error. */
long syscall_result(long result);

#endif
