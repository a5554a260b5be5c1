/* Interposition without preload: the library was opened late, by dlopen or Python's ctypes, and the dynamic
 * linker has bound the program's calls to the C library.
 *
 * Every module calls functions of other modules through a table of addresses, its global offset table (GOT). In
 * the GOTs of all modules the addresses of the functions that we hook are exchanged for ours:
 *
 *     before   program: call malloc ─► GOT[malloc] ─► libc's malloc
 *     after    program: call malloc ─► GOT[malloc] ─► our malloc ─► libc's malloc
 *
 * Not every call is caught: a program may keep a function's address anywhere. So libc's free may get a block that
 * we sampled, and blocks are never marked (mark.h). C++'s operators are left alone: they call malloc and free
 * through their library's GOT.
 *
 * Modules that are loaded later have to be taken over, too. dlopen chooses by its caller's address where to
 * search, so it can only be jumped to, and nothing of ours runs when it returns. But before the program can call
 * a function of the new library, it calls dlsym: our dlsym looks first whether there are new modules. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_GOT_TAKEOVER_H
#define MALLOSCOPE_RECORD_INTERCEPT_GOT_TAKEOVER_H

/* Takes over all modules that are loaded now. May be called again: what is taken over stays so. Does nothing if
 * this library was not opened late. */
void got_takeover_begin(void);

/* Puts every address back as it was. */
void got_takeover_end(void);

#endif
