/* The C library's own symbols for the malloc family lead to our functions.
 *
 * Most look-ups of `free` find ours, because we come before the C library. Some begin at the C library:
 *
 *     dlopen(..., RTLD_DEEPBIND)                     a library searches its own dependencies before the program's
 *     dlsym(dlopen("libc.so.6", ...), "free")        Python's ctypes.CDLL("libc.so.6").free
 *     dlsym(RTLD_NEXT, "free") in a library behind us
 *
 * The C library's free must not get a block that carries a mark (mark.h): to it, the block is no block. So where
 * blocks are marked, the values of these symbols in the C library's symbol table, in memory, are exchanged once,
 * before the first block is marked and before the program can open a library. From then on every look-up finds
 * ours, whoever makes it: of slots bound at once or at the first call, of pointers in data, by dlsym, in
 * constructors and in any thread. The functions themselves, which `real_allocator` holds, are not changed. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_LIBC_SYMBOLS_H
#define MALLOSCOPE_RECORD_INTERCEPT_LIBC_SYMBOLS_H

#include <stdbool.h>

/* To be called once, when `real_allocator` holds the C library's functions. False: the system refuses, and nothing
 * was changed. */
bool libc_symbols_take(void);

#endif
