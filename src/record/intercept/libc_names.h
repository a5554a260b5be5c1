/* The C library's second names for some of its functions: __libc_malloc and so on.
 *
 * Where the C library serves malloc, a few programs use both names: they allocate by one and free by the other.
 * Our __libc_malloc is then our malloc, because a block may carry a mark.
 *
 * A preloaded library that stands in front of the C library's malloc, to count or to check, reaches the C library
 * by these names. Such calls must not be recorded: our malloc would call that library's malloc, which would call
 * __libc_malloc again, without end. */
#ifndef MALLOSCOPE_RECORD_INTERCEPT_LIBC_NAMES_H
#define MALLOSCOPE_RECORD_INTERCEPT_LIBC_NAMES_H

/* From now on these names lead past the recorder, straight to the C library. */
void libc_names_set_apart(void);

#endif
