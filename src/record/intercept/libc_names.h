/* The C library's other names for some of its functions: __libc_malloc and so on.
 *
 * Where the C library serves malloc, a few programs mix both names: blocks of one are freed by the other, and
 * may be marked. They are the same to us then. Another allocator in front of the C library (one that is
 * preloaded to count or to check) reaches the C library by these names: what it asks for is its own business,
 * and would come back to it for ever if it was taken for a call of malloc. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_LIBC_NAMES_H
#define MALLOSCOPE_RECORD_INTERCEPT_LIBC_NAMES_H

/* From now on these names lead past the recorder, straight to the C library. */
void libc_names_set_apart(void);

#endif
