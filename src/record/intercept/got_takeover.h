/* Recording without preload: the library was opened late, by ctypes or dlopen, and the program's calls go to
 * the C library. They are taken over by changing where they go: in the tables through which every module
 * calls functions of others (its GOT), the addresses of the functions that are hooked are exchanged for ours.
 *
 * Not every call can be caught (a function's address may be anywhere), so that a block of ours may be freed
 * behind our back: blocks are never marked then (mark.h).
 *
 * C++'s operators are left alone: they call malloc and free through their library's table.
 *
 * dlopen chooses by its caller's address where it searches, so it cannot be called from here to look at what
 * is new when it returns. What comes next instead is dlsym, without which nothing in a new library can be
 * called: it looks first whether there are new modules. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_GOT_TAKEOVER_H
#define MALLOSCOPE_RECORD_INTERCEPT_GOT_TAKEOVER_H

/* All modules that are there now. May be repeated: what is taken over already stays so. Nothing happens where
 * calls arrive without that. */
void got_takeover_begin(void);

/* Every address is put back as it was. */
void got_takeover_end(void);

#endif
